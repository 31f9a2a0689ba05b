from functools import cache

import numpy as np
import pytest
from bundles import character_tokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, BertWordPieceTokenizer, Tokenizer

from training.pretrain.isolated import IsolatedTokens
from training.pretrain.wordpiece import SPECIAL_TOKENS

PIECES = [
    "天",
    "地",
    "，",
    "。",
    "[",
    "]",
    "mask",
    "linux",
    "cafe",
    "a",
    "b",
    "##a",
    "##b",
    "##x",
    "2019",
    "##9",
    "-",
    "ü",
]
MIXED = st.text("天地龘，。！[]MASKlinuxCafé abx2019-_\u3000\u00a0\u0301\u200dガあ한\U00020000ﬁ①", max_size=30)


def engine(*, lowercase: bool = True) -> Tokenizer:
    tokens = {token: number for number, token in enumerate([*SPECIAL_TOKENS, *PIECES])}
    tokenizer = BertWordPieceTokenizer(tokens, lowercase=lowercase)._tokenizer
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.encode_special_tokens = True
    return tokenizer


@cache
def fast(lowercase: bool) -> IsolatedTokens:
    return IsolatedTokens(engine(lowercase=lowercase))


@pytest.mark.parametrize("lowercase", [True, False])
@settings(deadline=None)
@given(texts=st.lists(st.one_of(MIXED, st.text(max_size=12)), min_size=1, max_size=6))
@example(texts=["天Linux [MASK]。", "", "cafe\u0301天\u0301abxab", " 天 "])
def test_tokens_are_those_of_the_engine(lowercase: bool, texts: list[str]) -> None:
    texts = [text.replace("\n", " ") for text in texts]
    reference = engine(lowercase=lowercase)
    found = fast(lowercase).encode(texts)
    encodings = [reference.encode(text, add_special_tokens=False) for text in texts]
    assert found.lengths.tolist() == [len(encoding.ids) for encoding in encodings]
    assert found.ids.tolist() == [number for encoding in encodings for number in encoding.ids]
    bases = np.cumsum([0, *(len(text) + 1 for text in texts)])
    expected = [base + start for base, encoding in zip(bases, encodings, strict=False) for start, _ in encoding.offsets]
    assert found.positions.tolist() == expected


def test_a_text_that_names_a_special_token_gets_none() -> None:
    found = IsolatedTokens(engine()).encode(["天[MASK]地[SEP]"])
    assert min(found.ids[:6]) >= len(SPECIAL_TOKENS)
    assert (found.ids != SPECIAL_TOKENS.index("[MASK]")).all()
    assert (found.ids != SPECIAL_TOKENS.index("[SEP]")).all()


def test_only_wordpiece_in_the_frame_of_bert_is_served() -> None:
    assert IsolatedTokens.serves(engine())
    assert not IsolatedTokens.serves(character_tokenizer())
    added = engine()
    added.add_tokens([AddedToken("天地")])
    assert not IsolatedTokens.serves(added)
