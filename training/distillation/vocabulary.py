"""A vocabulary without the scripts that no text is written in: of a small student most weights are its embeddings."""

import json
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as Engine

from model.architectures.foreign_weights import load_encoder
from model.files import canonical_json, flush, publish, read_json, sha256_file, staging_folder, write_json
from model.types import Text

UNIGRAM, BYTE_PAIRS = "Unigram", "BPE"
_CONTINUING = "##"
_SETTINGS = "tokenizer_config.json"


def scripts_of(texts: Iterable[Text]) -> frozenset[str]:
    """The scripts that letters of `texts` are of, as Unicode's names of characters begin: CJK, LATIN, HIRAGANA."""
    seen: set[str] = set()
    for text in texts:
        seen.update(text.text, text.pair or "")
    return frozenset(own for char in seen if (own := script(char)))


@lru_cache(maxsize=1 << 16)
def script(char: str) -> str | None:
    """What a letter is written in, CJK say. None of what is no letter: digits and punctuation are of all scripts."""
    if not unicodedata.category(char).startswith("L"):
        return None
    return unicodedata.name(char, "unknown").split()[0]


def pruned(folder: Path, scripts: frozenset[str], *, cache: Path) -> Path:
    """A folder under `cache` with the encoder in `folder` and its tokenizer, without the tokens of other scripts.

    Also without the pieces that its own rules never make: a WordPiece that takes every Chinese character for a word has
    no use for one that continues a word. Tokens without letters stay, and so do special ones. `folder` itself where
    nothing falls away, and where tokens are merged of bytes, which are of no script.
    """
    described = read_json(folder / "tokenizer.json")
    if described["model"]["type"] == BYTE_PAIRS:
        return folder
    kept = _kept(described, scripts)
    if len(kept) == len(described["model"]["vocab"]):
        return folder
    key = sha256(canonical_json([sha256_file(folder / "tokenizer.json"), _weights(folder), kept])).hexdigest()
    destination = cache / f"pruned-{key[:16]}"
    if not destination.exists():
        with staging_folder(destination) as staging:
            _write(folder, described, kept, staging)
            publish(staging, destination)
    return destination


def _weights(folder: Path) -> list[str]:
    return [sha256_file(path) for path in sorted(folder.glob("*.safetensors"))]


def _kept(described: Mapping[str, Any], scripts: frozenset[str]) -> list[int]:
    """The ids that stay, in their order."""
    special = {token["id"] for token in described["added_tokens"]}
    unreachable = _by_characters(described)
    return [
        number
        for token, number in _tokens(described["model"])
        if number in special or (_is_written_in(token, scripts) and not (unreachable and _continues_chinese(token)))
    ]


def _tokens(model: Mapping[str, Any]) -> list[tuple[str, int]]:
    if model["type"] == UNIGRAM:
        return [(piece, number) for number, (piece, _) in enumerate(model["vocab"])]
    return sorted(model["vocab"].items(), key=lambda item: item[1])


def _by_characters(described: Mapping[str, Any]) -> bool:
    """Whether Chinese text is cut into single characters before the vocabulary is asked."""
    normaliser = described["normalizer"] or {}
    return bool(normaliser.get("type") == "BertNormalizer" and normaliser.get("handle_chinese_chars"))


def _continues_chinese(token: str) -> bool:
    return token.startswith(_CONTINUING) and any(script(char) == "CJK" for char in token)


def _is_written_in(token: str, scripts: frozenset[str]) -> bool:
    return all(own in scripts for char in token if (own := script(char)))


def _write(folder: Path, described: dict[str, Any], kept: list[int], staging: Path) -> None:
    new = {old: number for number, old in enumerate(kept)}
    _renumber(described, new)
    engine = Engine.from_str(json.dumps(described, ensure_ascii=False))
    engine.save(str(staging / "tokenizer.json"))
    if (folder / _SETTINGS).exists():
        settings = dict(read_json(folder / _SETTINGS))
        settings.pop("added_tokens_decoder", None)  # it numbers tokens that tokenizer.json numbers too
        write_json(staging / _SETTINGS, settings)
    encoder: Any = load_encoder(folder)
    words = encoder.embeddings.word_embeddings
    padding = new.get(words.padding_idx)
    table = torch.nn.Embedding.from_pretrained(words.weight.detach()[kept], freeze=False, padding_idx=padding)
    encoder.embeddings.word_embeddings = table
    encoder.config.vocab_size = len(kept)
    encoder.config.pad_token_id = padding
    encoder.save_pretrained(staging)
    for path in staging.iterdir():
        flush(path)


def _renumber(described: dict[str, Any], new: Mapping[int, int]) -> None:
    """Give the tokens of a `tokenizer.json` their new numbers, wherever it names them."""
    model = described["model"]
    if model["type"] == UNIGRAM:
        model["vocab"] = [entry for number, entry in enumerate(model["vocab"]) if number in new]
        model["unk_id"] = new[model["unk_id"]]
    else:
        model["vocab"] = {token: new[number] for token, number in _tokens(model) if number in new}
    for token in described["added_tokens"]:
        token["id"] = new[token["id"]]
    template = described["post_processor"] or {}
    for token in template.get("special_tokens", {}).values():
        token["ids"] = [new[number] for number in token["ids"]]
    for name in ("sep", "cls"):  # of the templates that are BERT's and RoBERTa's by name
        if name in template:
            template[name] = [template[name][0], new[template[name][1]]]
    if padding := described["padding"]:
        padding["pad_id"] = new[padding["pad_id"]]
