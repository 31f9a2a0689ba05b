"""Words are replaced by words that could stand there, and only where the teacher reads the text as before."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starts import tiny_start
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerFast

from model.errors import BadInput
from model.metrics import activate, predicted_matrix
from model.snapshot import Snapshot
from model.types import FloatArray, Sample, Split, Text
from training.data import read
from training.distillation.augmentation import augment
from training.distillation.masked_words import CANDIDATES, MaskedWords
from training.distillation.replacing import Draft, draft, replaced
from training.distillation.word_neighbours import WordNeighbours

LETTERS = "上次中午来时这年房间酒店早餐服务员价格很干净便宜好快喜欢吵闹贵坏差慢"
TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *LETTERS,
    *(f"##{one}" for one in "abc"),
    *"abc",
    "。",
    "1",
    "2",
]


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with its heads and random weights, whose WordPiece takes Chinese by characters."""
    folder = tmp_path_factory.mktemp("masked-lm")
    vocabulary = {token: number for number, token in enumerate(TOKENS)}
    engine = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer()
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=engine, mask_token="[MASK]", **names).save_pretrained(folder)
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "initializer_range": 0.5,
    }
    config = BertConfig(vocab_size=len(TOKENS), max_position_embeddings=64, **sizes)
    BertForPreTraining(config).save_pretrained(folder)
    return folder


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_some_words_are_chosen_and_no_punctuation() -> None:
    for seed in range(20):
        one = draft("上次酒店的早餐，很便宜，服务员也好。12", generator(seed))
        assert one.text == "上次酒店的早餐，很便宜，服务员也好。12"
        assert 1 <= len(one.chosen) <= 3
        assert all(one.words[place].isalpha() for place in one.chosen)
    assert draft("12，。", generator()).chosen == ()


def test_what_is_made_follows_from_the_seed(masked_lm: Path) -> None:
    texts = [Text("上次房间很干净。"), Text("早餐好", "价格贵"), Text("12")]
    replacer = MaskedWords(masked_lm)
    made = [list(replaced(texts, replacer, copies=3, seed=seed)) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    assert {one for one, _ in made[0]} <= set(texts[:2])
    assert all(one != other and (one.pair is None) == (other.pair is None) for one, other in made[0])


def test_a_masked_word_is_written_anew_in_the_same_writing(masked_lm: Path) -> None:
    replacer = MaskedWords(masked_lm)
    drafts = [Draft(("上次", "房间", "很", "干净", "。"), (1, 3)), Draft(("价格", "abc", "1"), (1,)), Draft(("?",), ())]
    for seed in range(10):
        first, second, none = replacer(drafts, generator(seed))
        assert [len(word) for word in first] == [2, 2]
        assert all(letter in LETTERS for word in first for letter in word)
        assert len(second[0]) == 3
        assert set(second[0]) <= set("abc")
        assert none == []


def test_a_word_of_unknown_characters_and_one_that_is_too_far_back_stay(masked_lm: Path) -> None:
    replacer = MaskedWords(masked_lm)
    far = Draft((*["房间"] * 40, "酒店"), (0, 40))  # 64 positions
    (unknown,), (near, back) = replacer([Draft(("龘龘",), (0,)), far], generator())
    assert unknown == "龘龘"
    assert back == "酒店"
    assert len(near) == 2


def test_a_token_is_one_of_the_likeliest(masked_lm: Path) -> None:
    replacer = MaskedWords(masked_lm)
    words = ("早餐", "很", "好")
    model = BertForPreTraining.from_pretrained(masked_lm).eval()
    ids = [TOKENS.index(token) for token in ("[CLS]", *"早餐", "[MASK]", "好", "[SEP]")]
    with torch.inference_mode():
        scores = model(input_ids=torch.tensor([ids])).prediction_logits[0, 3].tolist()
    likeliest = sorted(LETTERS, key=lambda letter: -scores[TOKENS.index(letter)])[:CANDIDATES]
    drawn = {replacer([Draft(words, (1,))], generator(seed))[0][0] for seed in range(200)}
    assert drawn <= set(likeliest)
    assert likeliest[0] in drawn
    assert len(drawn) > 3


def test_a_model_without_its_heads_guesses_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no token for mask"):
        MaskedWords(tiny_start(tmp_path / "no-mask"))


def test_a_classifier_is_no_masked_language_model(masked_lm: Path, tmp_path: Path) -> None:
    BertForPreTraining.from_pretrained(masked_lm).bert.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((masked_lm / name).read_bytes())
    with pytest.raises(BadInput, match="no head that guesses masked tokens"):
        MaskedWords(tmp_path)


def test_neighbours_are_words_that_stand_among_the_same_words() -> None:
    places, goods, acts = ("酒店", "餐厅", "公园"), ("手机", "电脑", "相机"), ("我们", "今天", "下午", "昨天")
    texts = [Text(f"{act}去{place}玩") for act in acts for place in places for _ in range(4)]
    texts += [Text(f"{act}买了{good}来用") for act in acts for good in goods for _ in range(4)]
    replacer = WordNeighbours(texts, seed=0)
    for group in (places, goods):
        for word in group:
            vector = replacer.vectors[replacer.number[word]]
            likeness = {other: float(replacer.vectors[replacer.number[other]] @ vector) for other in (*places, *goods)}
            nearest = sorted(likeness, key=lambda other: -likeness[other])[:3]
            assert set(nearest) == set(group)
    assert replacer([Draft(("没有见过",), (0,))], generator()) == [["没有见过"]]


def test_only_texts_that_the_teacher_reads_as_their_originals_are_kept(snapshot: Snapshot, tmp_path: Path) -> None:
    train = [Text(sample.text) for sample in read(snapshot, Split.TRAIN)]
    held_out: list[Sample] = [*read(snapshot, Split.DEV), *read(snapshot, Split.TEST)]
    asked: list[int] = []

    def answers(texts: list[Text]) -> FloatArray:
        asked.append(len(texts))
        praised = np.array([any(word in text.text for word in ("干净", "便宜", "好", "快", "喜欢")) for text in texts])
        return np.column_stack((praised, ~praised)).astype(np.float32)

    def made() -> list[Text]:
        return augment(
            train,
            lambda: WordNeighbours(train, seed=0),
            copies=3,
            seed=0,
            taxonomy=snapshot.taxonomy,
            held_out=held_out,
            answers=answers,  # type: ignore[arg-type]
            folder=tmp_path / "augmented",
        )

    texts = made()
    assert len(texts) > 50
    assert len(set(texts)) == len(texts)
    assert not set(texts) & set(train)
    assert not {text.text for text in texts} & {sample.text for sample in held_out}
    n_asked = len(asked)
    assert made() == texts
    assert len(asked) == n_asked
    # each differs from an original that is read alike
    labels = predicted_matrix(activate(answers(texts), snapshot.taxonomy.activation), snapshot.taxonomy, None)
    assert labels.any(0).all()


def test_texts_without_words_give_no_others(snapshot: Snapshot, tmp_path: Path) -> None:
    def answers(texts: list[Text]) -> FloatArray:
        raise AssertionError(texts)

    made = augment(
        [Text("12"), Text("。")],
        lambda: WordNeighbours([], seed=0),
        copies=2,
        seed=0,
        taxonomy=snapshot.taxonomy,
        held_out=read(snapshot, Split.DEV),
        answers=answers,  # type: ignore[arg-type]
        folder=tmp_path,
    )
    assert made == []
