"""GPT's input transformations (Radford 2018, figure 1): every task becomes sequences that a decoder reads to the end.

one text         [START] text [EXTRACT]
ordered pair     [START] text [DELIMITER] pair [EXTRACT]
similarity       both orders of the pair; the decoder adds the states of their two [EXTRACT] tokens
multiple choice  [START] context [DELIMITER] answer [EXTRACT], one sequence an answer

The label is read off [EXTRACT], the last token, which alone has seen the whole text. So a text that is too long loses
the end of its words, the longer of a pair first, never [EXTRACT].
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from tokenizers import Tokenizer as Engine
from tokenizers.processors import TemplateProcessing

from model.errors import BadInput
from model.tokenization import subwords
from model.tokenization.base import collate
from model.tokenization.subwords import SWAPPED, SubwordTokenizer
from model.types import Text

START, DELIMITER, EXTRACT = "[START]", "[DELIMITER]", "[EXTRACT]"
INPUTS = ("input_ids", "attention_mask")


def load(folder: Path, *, max_length: int, similarity: bool = False) -> SubwordTokenizer:
    """The vocabulary of a start in `folder` in GPT's frame, which replaces the frame it had.

    Tokens of the frame that the vocabulary lacks come after all others; `vocabulary_size` counts them. `similarity`:
    pairs have no order, so both are given, as `input_ids` and `swapped_ids`. `save` keeps all this.

    Raises:
        BadInput: the vocabulary can't be read, or holds no words.
    """
    engine = subwords.read_engine(folder)
    frame(engine)
    inputs = (*INPUTS, SWAPPED) if similarity else INPUTS
    return subwords.from_engine(engine, max_length=max_length, inputs=inputs, source=folder)


def frame(engine: Engine) -> None:
    """Put `engine`'s texts and pairs in GPT's frame."""
    engine.add_special_tokens([START, DELIMITER, EXTRACT])  # those it has stay as they are
    if not engine.padding and all(engine.token_to_id(token) is None for token in subwords.PADDING_TOKENS):
        engine.add_special_tokens([subwords.PADDING_TOKENS[0]])  # OpenAI's vocabularies have none
    engine.post_processor = TemplateProcessing(
        single=f"{START} $A {EXTRACT}",
        pair=f"{START} $A {DELIMITER} $B {EXTRACT}",
        special_tokens=[(token, engine.token_to_id(token)) for token in (START, DELIMITER, EXTRACT)],
    )


def encode_choices(
    tokenizer: SubwordTokenizer, contexts: Sequence[str], answers: Sequence[Sequence[str]]
) -> dict[str, NDArray[Any]]:
    """Contexts with the answers of each, as many for every one: input name → (batch, n_choices, length).

    Raises:
        BadInput: a context has another number of answers than the first.
    """
    n_choices = len(answers[0])
    for row, several in enumerate(answers):
        if len(several) != n_choices:
            raise BadInput(
                f"context {row} has {len(several)} answers, the first has {n_choices}; batch those of like number"
            )
    texts = [Text(context, answer) for context, several in zip(contexts, answers, strict=True) for answer in several]
    arrays = collate(tokenizer.encode(texts), tokenizer.padding)
    return {name: values.reshape(len(contexts), n_choices, -1) for name, values in arrays.items()}
