from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENLEI_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of one to five paragraphs of reviews."""
    random = np.random.default_rng(3)
    places, times = ("房间", "酒店", "早餐", "服务员", "价格"), ("上次", "中午", "来时", "这年", "有时")
    words = ("很干净", "便宜", "好", "快", "不喜欢", "吵闹", "有点贵", "慢")
    documents = []
    for _ in range(120):
        paragraphs = [
            "".join(f"{random.choice(times)}，{random.choice(places)}{random.choice(words)}。" for _ in range(3))
            for _ in range(int(random.integers(1, 6)))
        ]
        documents.append("\n".join(paragraphs))
    path = tmp_path_factory.mktemp("corpus") / "reviews.txt"
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path
