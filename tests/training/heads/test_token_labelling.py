from pathlib import Path

import numpy as np
import pytest
import torch
from bundles import character_tokenizer
from torch import Tensor, nn

from training.device import NumberFormat
from training.heads.data import IGNORED, Tokenised
from training.heads.tokens import Entity, TaggedText, TokenLabelling, entities_of, entity_figures, tags_of


def tokens(*places: tuple[int, int]) -> Tokenised:
    return Tokenised(np.array(places, np.int64).reshape(-1, 2), ())


def row(text: str, *entities: Entity) -> TaggedText:
    return TaggedText(text, entities, {"text": text})


def reader(folder: Path, task: TokenLabelling, *, max_length: int, stride: int):
    character_tokenizer().save(str(folder / "tokenizer.json"))
    return task.reader(folder, max_length=max_length, stride=stride)


def test_entities_come_back_from_their_tags() -> None:
    text = tokens(*((place, place + 1) for place in range(8)))
    for entities in (
        [],
        [Entity(0, 8, "物")],
        [Entity(0, 1, "物"), Entity(1, 2, "物"), Entity(2, 3, "人")],
        [Entity(1, 3, "物"), Entity(5, 8, "a-b")],
    ):
        assert entities_of(tags_of(entities, text), text) == entities


def test_a_token_across_an_edge_goes_to_the_entity_with_more_of_it() -> None:
    text = tokens((0, 2), (2, 7), (7, 9))
    assert tags_of([Entity(0, 4, "物"), Entity(4, 9, "人")], text) == ["B-物", "B-人", "I-人"]
    assert tags_of([Entity(0, 5, "物"), Entity(5, 9, "人")], text) == ["B-物", "I-物", "B-人"]
    assert tags_of([Entity(3, 4, "物")], text) == ["O", "B-物", "O"]


def test_what_tokens_cannot_tell_is_counted(tmp_path: Path) -> None:
    # a token is a character here, so only a space, which has none, can be at an edge
    task = TokenLabelling(("物",))
    rows = [row("好 房间", Entity(1, 4, "物")), row("好房间", Entity(1, 3, "物"))]
    dataset = reader(tmp_path, task, max_length=16, stride=8)(rows)
    assert list(task.losses(dataset).values()) == [1]


def test_tags_without_a_beginning_begin_an_entity_as_in_conll() -> None:
    text = tokens((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    found = entities_of(["I-物", "I-物", "I-人", "O", "I-人"], text)
    assert found == [Entity(0, 2, "物"), Entity(2, 3, "人"), Entity(4, 5, "人")]


def test_tokens_without_characters_neither_break_nor_begin_entities() -> None:
    text = tokens((0, 1), (2, 2), (3, 4), (4, 4))
    assert entities_of(["B-物", "O", "I-物", "B-人"], text) == [Entity(0, 4, "物")]


def test_only_whole_entities_with_their_label_count() -> None:
    gold = [[Entity(0, 2, "物"), Entity(3, 4, "人")], [Entity(0, 1, "物")], []]
    found = [[Entity(0, 2, "物"), Entity(3, 4, "物")], [Entity(0, 2, "物")], [Entity(5, 6, "人")]]
    figures = entity_figures(found, gold)
    assert figures == {"precision": 1 / 4, "recall": 1 / 3, "f1": 2 / 7}
    assert entity_figures([[]], [[]]) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_targets_are_the_tags_of_real_tokens(tmp_path: Path) -> None:
    task = TokenLabelling(("人", "物"))
    rows = [row("我房间好", Entity(1, 3, "物")), row("好", Entity(0, 1, "地"))]
    dataset = reader(tmp_path, task, max_length=16, stride=8)(rows)
    targets = dataset.targets([0, 1])
    assert targets.shape == dataset.batch([0, 1])["input_ids"].shape
    kept = [[task.tags[number] for number in each[each != IGNORED]] for each in targets]
    assert kept == [["O", "B-物", "I-物", "O"], []]  # the label of the second is none that train has
    assert targets[0, :2].tolist() == [IGNORED, 0]  # [CLS] has no tag


class ByWindow(nn.Module):
    """Tags a token with the distance to the nearer edge of its window, and so tells what window it was seen in."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(1))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        lengths = attention_mask.sum(1, keepdim=True)
        places = torch.arange(input_ids.shape[1])
        nearest = torch.minimum(places, lengths - 1 - places).clamp(min=0)
        return nn.functional.one_hot(nearest, input_ids.shape[1]).float()[..., :9]


@pytest.mark.parametrize("length", [6, 7, 20, 23])
def test_a_token_in_several_windows_is_judged_where_most_is_around_it(length: int, tmp_path: Path) -> None:
    task = TokenLabelling(("甲", "乙", "丙", "丁"))
    dataset = reader(tmp_path, task, max_length=10, stride=2)([row("好" * length)])
    (tags,) = task._tags(ByWindow(), dataset, NumberFormat.FP32)
    seen = [task.tags.index(tag) for tag in tags]  # 1 for the first and last token of a window
    nearest = np.zeros(length, np.int64)
    for window in dataset.windows:
        places = np.arange(window.count)
        inside = slice(window.first, window.first + window.count)
        nearest[inside] = np.maximum(nearest[inside], np.minimum(places, window.count - 1 - places) + 1)
    assert seen == nearest.tolist()
    assert max(seen[0], seen[-1]) == 1


def test_answers_cut_their_text_out_of_long_texts(tmp_path: Path) -> None:
    class KnowsPlaces(ByWindow):
        def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
            engine = character_tokenizer()
            tags = (input_ids == engine.token_to_id("房")) * 1 + (input_ids == engine.token_to_id("间")) * 2
            return nn.functional.one_hot(tags, 3).float()

    text = "在 房间，我不好，" * 6 + "房间"
    task = TokenLabelling(("物",))
    dataset = reader(tmp_path, task, max_length=12, stride=5)([row(text)])
    assert len(dataset) > 5
    (answer,) = task.answers(KnowsPlaces(), dataset, precision=NumberFormat.FP32)
    assert len(answer["entities"]) == 7
    for entity in answer["entities"]:
        assert text[entity["start"] : entity["end"]] == entity["text"] == "房间"
