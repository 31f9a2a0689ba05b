"""Folders of `label/*.txt`, and fastText's files: labels come with the texts."""

from pathlib import Path

import pytest
from workshop import Workshop

from app.library.fasttext import fasttext_rows
from app.library.readers import Row
from app.store.tables import sources
from model.errors import BadInput
from model.types import Task


@pytest.fixture
def folder(workshop: Workshop) -> Path:
    """Texts in sub-folders, in two encodings, with files beside them that are none."""
    root = workshop.home / "语料"
    for name, content in {
        "体育/1.txt": "球队夺冠\n全城欢庆\n".encode(),
        "体育/2.txt": "新赛季开幕".encode("gb18030"),
        "财经/1.txt": "股市回暖".encode(),
        "财经/空.txt": b"",
        "财经/.隐藏.txt": b"x",
        "读我.txt": "说明".encode(),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def test_each_sub_folder_is_a_label_and_each_file_a_text(workshop: Workshop, folder: Path) -> None:
    imported = workshop.load(folder, text=None, label=None)
    assert (imported.read, imported.added, imported.rejected) == (4, 3, 1)
    assert imported.rejects_file is not None
    assert "财经/空.txt" in imported.rejects_file.read_text(encoding="utf-8")
    labels = {text: sample.labels for text, sample in workshop.samples().items()}
    assert labels == {"球队夺冠 全城欢庆": ("体育",), "新赛季开幕": ("体育",), "股市回暖": ("财经",)}
    assert workshop.load(folder, text=None, label=None).added == 0
    assert workshop.count(sources) == 1


def test_a_folder_without_texts_in_sub_folders_is_refused(workshop: Workshop) -> None:
    (workshop.home / "空").mkdir()
    with pytest.raises(BadInput, match=r"is a folder, and its sub-folders hold no \.txt files"):
        workshop.load(workshop.home / "空")


def test_labels_of_fasttext_may_stand_anywhere_in_the_line() -> None:
    lines = ["__label__体育 __label__娱乐 球星 走红毯\n", "\n", "股市 回暖 __label__财经\n", "没有标签\n"]
    assert [*fasttext_rows(lines)] == [
        Row(1, ["球星 走红毯", ["体育", "娱乐"]]),
        Row(3, ["股市 回暖", ["财经"]]),
        Row(4, ["没有标签", []]),
    ]


def test_a_fasttext_file_needs_no_columns(workshop: Workshop) -> None:
    content = "__label__体育 __label__娱乐 球星走红毯\n__label__财经 股市回暖\n没有标签\n"
    path = workshop.write("train.txt", content)
    imported = workshop.load(path, text=None, label=None, task=Task.MULTI)
    assert (imported.added, imported.rejected) == (2, 1)
    assert workshop.samples()["球星走红毯"].labels == ("体育", "娱乐")
    single = workshop.load(path, text=None, label=None, library="single")
    assert single.rejects_file is not None
    assert "--task multi takes several" in single.rejects_file.read_text(encoding="utf-8")
