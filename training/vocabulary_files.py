"""`tokenizer.json` from the vocabulary files of older checkpoints: `vocab.txt`, or `vocab.json` with `merges.txt`.

Most Chinese checkpoints come with a WordPiece `vocab.txt`, decoders among them; some decoders with a BPE.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from model.errors import BadInput
from model.files import read_json, write_json
from model.tokenization.subwords import FEWEST_TOKENS

WORDPIECE = ("vocab.txt",)
BPE = ("vocab.json", "merges.txt")
SETTINGS = "tokenizer_config.json"
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
FRAME = ("[UNK]", "[CLS]", "[SEP]")  # without these no text is encoded; others matter where they are needed
LONGEST_WORD = 100  # characters; a longer one is unknown, as BERT has it


def vocabulary_files(folder: Path) -> list[Path]:
    """The files in `folder` that `convert` reads, its settings included; none where there is no vocabulary."""
    for names in (WORDPIECE, BPE):
        if all((folder / name).exists() for name in names):
            return [folder / name for name in (*names, SETTINGS) if (folder / name).exists()]
    return []


def convert(folder: Path, destination: Path, *, model_type: str) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` into `destination` from the vocabulary in `folder`.

    Raises:
        BadInput: the vocabulary can't be read, holds no words, or lacks a token that every text needs.
    """
    settings = _settings(folder)
    if (folder / WORDPIECE[0]).exists():
        tokens = read_tokens(folder / WORDPIECE[0])
        engine = wordpiece(tokens, settings, path=folder / WORDPIECE[0])
        special = {f"{name}_token": token for name, token in SPECIAL.items() if token in tokens}
    else:
        engine = byte_pairs(folder, model_type)
        unknown = [token for token in ("<unk>", "<|endoftext|>") if engine.token_to_id(token) is not None]
        special = {"unk_token": unknown[0]} if unknown else {}
    engine.save(str(destination / "tokenizer.json"))
    write_json(destination / SETTINGS, {**special, **settings, "tokenizer_class": "PreTrainedTokenizerFast"})


def read_tokens(path: Path) -> list[str]:
    """The tokens of a `vocab.txt`, one a line; a token's id is the number of its line.

    Raises:
        BadInput: it can't be read, or has hardly any.
    """
    try:
        # by line feeds alone: Chinese vocabularies hold characters that Unicode takes for ends of lines
        tokens = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the vocabulary {path} can't be read: {error}; it has to be UTF-8, a token a line") from None
    if len(tokens) < FEWEST_TOKENS:
        raise BadInput(f"the vocabulary {path} has only {len(tokens)} tokens; every text would be unknown to it")
    return tokens


def wordpiece(tokens: Sequence[str], settings: dict[str, Any], *, path: Path) -> Tokenizer:
    """WordPiece in the frame of BERT, its case and accents treated as `settings` (tokenizer_config.json) say.

    Raises:
        BadInput: the vocabulary, which was read from `path`, lacks a token that every text needs.
    """
    ids = {token: number for number, token in enumerate(tokens)}
    if absent := [token for token in FRAME if token not in ids]:
        raise BadInput(f"the vocabulary {path} lacks {', '.join(absent)}, which every text needs; take the whole file")
    engine = Tokenizer(models.WordPiece(ids, unk_token=SPECIAL["unk"], max_input_chars_per_word=LONGEST_WORD))
    engine.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece()
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )
    engine.add_special_tokens([token for token in SPECIAL.values() if token in ids])
    return engine


def byte_pairs(folder: Path, model_type: str) -> Tokenizer:
    """Byte-pair encoding (Sennrich 2016): of bytes, as GPT-2 has it, or of characters in lower case, as the first GPT.

    Raises:
        BadInput: the files can't be read, or hold hardly any tokens.
    """
    vocabulary, merges = (str(folder / name) for name in BPE)
    of_characters = model_type == "openai-gpt"
    try:
        if of_characters:
            model = models.BPE.from_file(vocabulary, merges, unk_token="<unk>", end_of_word_suffix="</w>")  # noqa: S106
        else:
            model = models.BPE.from_file(vocabulary, merges)
    except Exception as error:  # tokenizers raises nothing narrower
        raise BadInput(f"{vocabulary} and {merges} can't be read as a vocabulary: {error}; copy them again") from None
    engine = Tokenizer(model)
    if engine.get_vocab_size() < FEWEST_TOKENS:
        raise BadInput(f"{vocabulary} has only {engine.get_vocab_size()} tokens; every text would be unknown to it")
    if of_characters:
        engine.normalizer = normalizers.BertNormalizer(lowercase=True)
        engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        engine.decoder = decoders.BPEDecoder(suffix="</w>")
    else:
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens(
        [token for token in ("<|endoftext|>", "<unk>", "<pad>") if engine.token_to_id(token) is not None]
    )
    return engine


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / SETTINGS
    if not path.exists():
        return {}
    try:
        return dict(read_json(path))
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path} can't be read: {error}; copy it again") from None
