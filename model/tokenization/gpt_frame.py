"""GPT's input transformations (Radford 2018, figure 1): every task becomes sequences that a decoder reads to the end.

one text         [START] text [EXTRACT]
ordered pair     [START] text [DELIMITER] pair [EXTRACT]
similarity       both orders of the pair; the decoder adds the states of their two [EXTRACT] tokens
multiple choice  [START] context [DELIMITER] answer [EXTRACT], one sequence an answer

The label is read off [EXTRACT], the last token, which alone has seen the whole text. So a text that is too long loses
the end of its words, the longer of a pair first, never [EXTRACT].
"""

from pathlib import Path

from tokenizers import Tokenizer as Engine
from tokenizers.processors import TemplateProcessing

from model.errors import BadInput
from model.tokenization import subwords
from model.tokenization.subwords import SWAPPED, SubwordTokenizer

START, DELIMITER, EXTRACT = "[START]", "[DELIMITER]", "[EXTRACT]"
INPUTS = ("input_ids", "attention_mask")


def load(folder: Path, *, max_length: int, similarity: bool = False) -> SubwordTokenizer:
    """The vocabulary of a start in `folder` in GPT's frame, which replaces the frame it had.

    Tokens of the frame that the vocabulary lacks come after all others; `vocabulary_size` counts them. `similarity`:
    pairs have no order, so both are given, as `input_ids` and `swapped_ids`. `save` keeps all this.

    Raises:
        BadInput: the vocabulary can't be read, holds no words, or leaves no ids for the tokens of the frame.
    """
    engine = subwords.read_engine(folder)
    _frame(engine, folder, single=f"{START} $A {EXTRACT}", pair=f"{START} $A {DELIMITER} $B {EXTRACT}")
    inputs = (*INPUTS, SWAPPED) if similarity else INPUTS
    return subwords.from_engine(engine, max_length=max_length, inputs=inputs, source=folder)


def load_for_pretraining(folder: Path, *, max_length: int) -> SubwordTokenizer:
    """The vocabulary in `folder` for a language model: [START] text.

    The other tokens of the frame come with fine-tuning, at random. Had they been there, without ever occurring, the
    language model, whose output embeddings are its input embeddings, would have made them large and all but equal.

    Raises:
        BadInput: as `load`.
    """
    engine = subwords.read_engine(folder)
    _frame(engine, folder, single=f"{START} $A", pair=f"{START} $A $B")
    return subwords.from_engine(engine, max_length=max_length, inputs=INPUTS, source=folder)


def _frame(engine: Engine, folder: Path, *, single: str, pair: str) -> None:
    tokens = [token for token in (START, DELIMITER, EXTRACT) if token in pair]
    engine.add_special_tokens(tokens)  # those it has stay as they are
    if not engine.padding and all(engine.token_to_id(token) is None for token in subwords.PADDING_TOKENS):
        engine.add_special_tokens([subwords.PADDING_TOKENS[0]])  # OpenAI's vocabularies have none
    # a new token's id is the number of those before it, which others may have where ids leave gaps
    ids: dict[int, str] = {}
    for token, token_id in engine.get_vocab().items():
        if (other := ids.setdefault(token_id, token)) != token:
            raise BadInput(
                f"{folder}/tokenizer.json: {' and '.join(sorted((other, token)))} are both {token_id}, since its ids "
                "leave gaps, of a vocabulary that has tokens twice say; fill them with unused tokens, one an id"
            )
    engine.post_processor = TemplateProcessing(
        single=single, pair=pair, special_tokens=[(token, engine.token_to_id(token)) for token in tokens]
    )
