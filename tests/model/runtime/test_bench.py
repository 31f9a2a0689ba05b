import json
from pathlib import Path

import pytest

from model import console
from model.errors import BadInput
from model.runtime.bench import BATCH, MADE_UP_TEXTS, bench
from model.types import Text
from tests.bundles import tiny_bundle


def test_every_precision_is_measured_on_texts_of_the_length_that_was_asked_for(tmp_path: Path) -> None:
    report = bench(tiny_bundle(tmp_path / "b"), tokens=20, runs=7)
    assert report.tokens == 20
    figures = report.precisions["fp32"]
    assert 0 < figures.p50_ms <= figures.p99_ms
    assert figures.texts_per_second > 0
    assert report.encode_ms > 0
    assert report.speedup == {"fp32": 1.0}
    assert json.loads(json.dumps(report.to_json()))["precisions"]["fp32"]["file_mib"] >= 0


@pytest.mark.parametrize("tokens", [2, 65])
def test_a_length_that_the_model_does_not_read_is_refused(tmp_path: Path, tokens: int) -> None:
    with pytest.raises(BadInput, match="the model reads 3 to 64"):
        bench(tiny_bundle(tmp_path / "b"), tokens=tokens)


def test_a_model_that_reads_little_is_measured_on_what_it_reads(tmp_path: Path) -> None:
    assert bench(tiny_bundle(tmp_path / "b", max_length=24), runs=1).tokens == 24


def test_given_texts_are_measured_whatever_their_length(tmp_path: Path) -> None:
    texts = [Text("房间很干净"), Text("太吵"), Text("早餐很好" * 5)]
    assert bench(tiny_bundle(tmp_path / "b", max_length=24), texts=texts, tokens=99, runs=1).tokens == 5 + 2


def test_progress_ends_at_its_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "LOG_SECONDS", 0.0)
    bench(tiny_bundle(tmp_path / "b"), runs=6)
    total = 6 + MADE_UP_TEXTS // BATCH
    assert f" {total}/{total}," in capsys.readouterr().err.splitlines()[-1]
