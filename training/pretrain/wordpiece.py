"""WordPiece in the frame of BERT: Chinese characters stand alone, Latin words and numbers are cut in pieces.

The one place that writes the `tokenizer.json` of vocabularies of sub-words, for BERT, NEZHA and GPT alike, so that
their losses compare a character.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from model.files import write_json

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PREFIX = "##"  # of a piece that goes on
LONGEST_WORD = 100  # characters; a longer one is unknown, as BERT has it
FEWEST_TIMES = 2  # that a character or a piece has to occur


def normaliser(*, lower_case: bool) -> normalizers.BertNormalizer:
    """What is done to a text first: Chinese characters set apart, letters without case and accents."""
    return normalizers.BertNormalizer(lowercase=lower_case)


def save(folder: Path, tokens: Sequence[str], *, lower_case: bool) -> None:
    """Write `tokenizer.json`, and `tokenizer_config.json` for transformers; a token's id is its place in `tokens`."""
    ids = {token: number for number, token in enumerate(tokens)}
    engine = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))  # noqa: S106
    engine.normalizer = normaliser(lower_case=lower_case)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )
    engine.decoder = decoders.WordPiece(prefix=PREFIX)
    engine.add_special_tokens(list(SPECIAL_TOKENS))
    folder.mkdir(parents=True, exist_ok=True)
    engine.save(str(folder / "tokenizer.json"))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",  # which takes tokenizer.json as it is
            "do_lower_case": lower_case,
            "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
            **names,
        },
    )


def pieces(words: Mapping[str, int], *, characters: Sequence[str], size: int) -> list[str]:
    """A vocabulary of `size` tokens: special ones, `characters`, and the pieces that the words, counted, are made of.

    The trainer of `tokenizers` numbers what it meets in the order of a hash table with a seed of its own, so that of
    equal counts another pair is joined first each time. It gets everything that has a number before the first join as
    special tokens, which it numbers in the order given; the rest follows from the counts.
    """
    known = set(characters)
    spelled = {word: count for word, count in words.items() if known.issuperset(word) and len(word) <= LONGEST_WORD}
    inner = sorted({PREFIX + character for word in spelled for character in word[1:]})
    start = [*SPECIAL_TOKENS, *characters, *inner][:size]
    engine = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=FEWEST_TIMES, special_tokens=start, show_progress=False
    )
    engine.train_from_iterator((f"{word} " * count for word, count in spelled.items()), trainer)
    ids = engine.get_vocab()
    return sorted(ids, key=ids.__getitem__)[:size]
