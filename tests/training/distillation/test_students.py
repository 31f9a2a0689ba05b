from pathlib import Path
from typing import Any

import pytest
import torch
from starts import tiny_start
from torch import Tensor

from model.architectures.foreign_weights import load_encoder
from model.errors import BadInput
from model.files import write_json
from training.distillation.student import StudentSize, new_student, read_layer_map, read_size

TEACHER = StudentSize(layers=12, hidden_size=768, heads=12, inner_size=3072)


def words(encoder: Any) -> Tensor:
    table: Tensor = encoder.embeddings.word_embeddings.weight
    return table


def test_named_sizes_are_those_of_the_paper() -> None:
    assert read_size("tiny4-312", TEACHER) == StudentSize(4, 312, 12, 1200)
    assert read_size("tiny6-768", TEACHER) == StudentSize(6, 768, 12, 3072)


def test_a_file_says_what_differs_from_the_teacher(tmp_path: Path) -> None:
    write_json(tmp_path / "student.json", {"layers": 6, "inner_size": 1536})
    assert read_size(str(tmp_path / "student.json"), TEACHER) == StudentSize(6, 768, 12, 1536)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"layers": 13}, "layers 13, its teacher only 12"),
        ({"hidden_size": 1024, "heads": 16}, "hidden_size 1024, its teacher only 768"),
        ({"width": 4}, "layers, hidden_size, heads, inner_size"),
        ({"layers": 4.5}, "4.5"),
        ({"layers": 0}, "layers is 0"),
        ({"hidden_size": 100}, "hidden_size 100 is no multiple of heads 12"),
        ([4], "JSON object"),
    ],
)
def test_a_student_that_can_t_be_is_refused(content: object, said: str, tmp_path: Path) -> None:
    write_json(tmp_path / "student.json", content)
    with pytest.raises(BadInput, match=said):
        read_size(str(tmp_path / "student.json"), TEACHER)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="tiny4-312, tiny6-768, rbt3 nor a JSON file"):
        read_size("tiny", TEACHER)


@pytest.mark.parametrize(
    ("layers", "expected"), [(4, (3, 6, 9, 12)), (6, (2, 4, 6, 8, 10, 12)), (5, (2, 5, 7, 10, 12))]
)
def test_layers_follow_evenly_and_the_last_one_the_last(layers: int, expected: tuple[int, ...]) -> None:
    assert read_layer_map(None, student=StudentSize(layers, 312, 12, 1200), teacher=TEACHER) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("1,2,3", "names 3 layers, the student has 4"),
        ("3,6,9,13", "the teacher has 1 to 12"),
        ("0,6,9,12", "the teacher has 1 to 12"),
        ("6,3,9,12", "layers have to rise"),
        ("a,b,c,d", "3,6,9,12 say"),
    ],
)
def test_a_layer_map_that_can_t_be_is_refused(given: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_layer_map(given, student=StudentSize(4, 312, 12, 1200), teacher=TEACHER)


@pytest.mark.parametrize("arch", ["bert", "nezha"])
def test_a_student_as_wide_as_its_teacher_begins_as_the_layers_that_it_follows(arch: str, tmp_path: Path) -> None:
    folder = tiny_start(tmp_path / "teacher", arch=arch)
    teacher = load_encoder(folder).state_dict()
    size = StudentSize(layers=1, hidden_size=32, heads=4, inner_size=64)
    student = new_student(folder, size, (2,), dropout=0.1).state_dict()
    assert student.keys() < teacher.keys()
    for name, weight in student.items():
        assert torch.equal(weight, teacher[name.replace("layer.0.", "layer.1.")]), name


def test_a_narrower_student_keeps_what_is_near_among_the_words(tmp_path: Path) -> None:
    folder = tiny_start(tmp_path / "teacher")
    size = StudentSize(layers=2, hidden_size=24, heads=4, inner_size=48)
    teacher, mine = words(load_encoder(folder)), words(new_student(folder, size, (1, 2), dropout=0.1))
    assert mine.shape == (len(teacher), 24)
    apart = [torch.cdist(each - each.mean(0), each - each.mean(0)).flatten() for each in (teacher, mine)]
    assert torch.corrcoef(torch.stack(apart))[0, 1] > 0.9
    random = words(new_student(folder, size, (1, 2), dropout=0.1, random=True))
    assert torch.corrcoef(torch.stack([apart[0], torch.cdist(random, random).flatten()]))[0, 1] < 0.9
