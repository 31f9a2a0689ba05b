from pathlib import Path
from typing import cast

import numpy as np
import pytest
from bundles import CHARACTERS as CHARACTERS_OF_ALL
from bundles import character_tokenizer
from checkpoints import N_TOKENS, PUBLISHED, published
from elmos import CHARACTERS, WORDS, tiny_elmo_start, tiny_tokenizer
from starts import tiny_start

from model.errors import BadInput
from model.files import read_json, write_json
from model.tokenization.base import Encoded
from model.tokenization.subwords import SubwordTokenizer
from model.tokenization.words import WordTokenizer
from model.types import Sample, Split, Task, Taxonomy
from training.data import Dataset, encode
from training.kinds import GptKind
from training.pretrained import Start
from training.start_checks import check_architecture, check_embeddings, check_known, check_words

TAKES = {"bert": ("bert", "ernie", "electra"), "nezha": ("nezha",), "gpt": ("openai-gpt", "gpt2"), "elmo": ()}


def settings(folder: Path, kind: str, **changes: object) -> Path:
    """A folder with the settings of a tiny model."""
    published(kind).config.save_pretrained(folder)
    config = {**read_json(folder / "config.json"), **changes}
    write_json(folder / "config.json", {name: value for name, value in config.items() if value is not None})
    return folder


def check(folder: Path, arch: str, *, max_length: int = 64) -> None:
    check_architecture(folder, init="somewhere", arch=arch, max_length=max_length)


@pytest.mark.parametrize("model_type", PUBLISHED)
@pytest.mark.parametrize("arch", TAKES)
def test_every_architecture_takes_its_own_kin_alone(arch: str, model_type: str, tmp_path: Path) -> None:
    settings(tmp_path, model_type)
    if model_type in TAKES[arch]:
        check(tmp_path, arch)
        return
    takes = next(other for other, types in TAKES.items() if model_type in types)
    with pytest.raises(BadInput, match=f"is of type {model_type}, --arch {arch} needs .*; --arch {takes} takes it"):
        check(tmp_path, arch)


def test_elmo_takes_an_elmo(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", {"model_type": "wenlei-elmo"})
    check(tmp_path, "elmo")
    with pytest.raises(BadInput, match=r"is of type wenlei-elmo, --arch bert needs an encoder.*--arch elmo takes it"):
        check(tmp_path, "bert")


@pytest.mark.parametrize(
    ("arch", "model_type", "setting"),
    [
        ("bert", "electra", "max_position_embeddings"),
        ("gpt", "gpt2", "n_positions"),
        ("gpt", "openai-gpt", "n_positions"),
    ],
)
def test_texts_longer_than_the_table_of_positions_are_refused(
    arch: str, model_type: str, setting: str, tmp_path: Path
) -> None:
    settings(tmp_path, model_type, **{setting: 71})
    check(tmp_path, arch, max_length=68)
    with pytest.raises(BadInput, match="--max-length 69 is more than the 68 positions of somewhere"):
        check(tmp_path, arch, max_length=69)
    settings(tmp_path, model_type, **{setting: None})
    with pytest.raises(BadInput, match=f"config.json is not that of a {arch.upper()}.*has to say {setting}"):
        check(tmp_path, arch)


def test_no_text_is_too_long_for_a_nezha(tmp_path: Path) -> None:
    check(settings(tmp_path, "nezha"), "nezha", max_length=4096)


@pytest.mark.parametrize(
    ("arch", "model_type", "changes", "message"),
    [
        ("bert", "bert", {"is_decoder": True}, "is of type bert decoder, --arch bert needs an encoder"),
        ("nezha", "nezha", {"hidden_act": "silu"}, "hidden_act silu, which can't be exported; only gelu"),
        ("gpt", "gpt2", {"activation_function": "tanh"}, "activation_function tanh, which can't be exported"),
        ("gpt", "openai-gpt", {"afn": "gelu_new"}, "afn gelu_new, which can't be exported; only gelu, swish"),
        ("bert", "bert", {"model_type": "roberta"}, "is of type roberta, --arch bert needs an encoder of type bert"),
    ],
)
def test_what_can_not_be_trained_or_exported_is_refused(
    arch: str, model_type: str, changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    settings(tmp_path, model_type, **changes)
    with pytest.raises(BadInput, match=message):
        check(tmp_path, arch)


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [("openai-gpt", {"afn": "swish"}), ("openai-gpt", {"afn": None}), ("gpt2", {"activation_function": "silu"})],
)
def test_an_activation_that_a_decoder_s_graph_has_is_taken(
    model_type: str, changes: dict[str, object], tmp_path: Path
) -> None:
    check(settings(tmp_path, model_type, **changes), "gpt")


def test_settings_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[1, 2]")
    with pytest.raises(BadInput, match=r"--init somewhere: config\.json can't be read"):
        check(tmp_path, "bert")


@pytest.mark.parametrize("model_type", PUBLISHED)
def test_a_tokenizer_of_more_tokens_than_embeddings_is_refused(model_type: str, tmp_path: Path) -> None:
    start = Start(folder=settings(tmp_path, model_type), name="tiny", sha256="", model_type=model_type)
    check_embeddings(N_TOKENS, start)
    with pytest.raises(BadInput, match="the tokenizer of tiny has 61 tokens, its encoder 60 embeddings"):
        check_embeddings(N_TOKENS + 1, start)


def test_a_tokenizer_that_is_not_the_decoder_s_is_refused(tmp_path: Path) -> None:
    start = Start(folder=tiny_start(tmp_path, arch="gpt"), name="tiny", sha256="", model_type="openai-gpt")
    n_tokens = character_tokenizer().get_vocab_size()
    opened = GptKind().open(start, max_length=32)
    assert cast(SubwordTokenizer, opened.tokenizer).vocabulary_size == n_tokens + 3, "the frame's tokens may be new"
    character_tokenizer(CHARACTERS_OF_ALL + "龘").save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(BadInput, match=f"tiny has {n_tokens + 1} tokens, its encoder {n_tokens} embeddings"):
        GptKind().open(start, max_length=32)


def test_similarity_is_refused_where_no_text_is_a_pair(tmp_path: Path) -> None:
    start = Start(folder=tiny_start(tmp_path, arch="gpt"), name="tiny", sha256="", model_type="openai-gpt")
    taxonomy = Taxonomy(Task.SINGLE, ("好评", "差评"))
    alone, pair = Sample("1", "好", None, ("好评",), Split.TRAIN), Sample("2", "好", "坏", ("差评",), Split.TRAIN)
    opened = GptKind(similarity=True).open(start, max_length=32)
    opened.check(encode([alone, pair], opened.tokenizer, taxonomy))
    with pytest.raises(BadInput, match="--similarity is for pairs of texts, and none of the 2 train samples is one"):
        opened.check(encode([alone, alone], opened.tokenizer, taxonomy))


def test_words_of_another_model_are_refused(tmp_path: Path) -> None:
    start = Start(folder=tiny_elmo_start(tmp_path), name="tiny", sha256="", model_type="wenlei-elmo")
    check_words(tiny_tokenizer(), start)
    settings = {"characters": CHARACTERS, "longest_word": 4}
    for others in ((*WORDS[1:], WORDS[0]), WORDS[:-1]):
        with pytest.raises(BadInput, match=r"tiny has \d\d words, its model 25, and not the same ones"):
            check_words(WordTokenizer(words=others, **settings), start)


def test_texts_that_a_tokenizer_does_not_know_are_refused(tmp_path: Path) -> None:
    start = Start(folder=tmp_path, name="tiny", sha256="", model_type="bert")

    def dataset(*ids: int) -> Dataset:
        encoded = [Encoded({"input_ids": np.array(ids)})]
        return Dataset(samples=[], encoded=encoded, gold=np.zeros((1, 2), bool), padding={"input_ids": 0})

    check_known(dataset(2, 5, 6, 7, 1), name="input_ids", unknown=1, start=start)
    check_known(dataset(1, 1, 1), name="input_ids", unknown=None, start=start)  # a vocabulary that knows everything
    with pytest.raises(BadInput, match="50% of the texts' tokens are unknown to tiny"):
        check_known(dataset(2, 1, 1, 5, 0, 0, 0, 0), name="input_ids", unknown=1, start=start)
