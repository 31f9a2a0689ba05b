import json
from pathlib import Path

import pytest

from model.errors import BadInput
from model.runtime.bench import BATCH_ROUNDS, bench
from tests.bundles import tiny_bundle


def test_every_precision_is_measured_on_texts_of_the_length_that_was_asked_for(tmp_path: Path) -> None:
    steps: list[float] = []
    report = bench(tiny_bundle(tmp_path / "b"), tokens=20, runs=7, advance=steps.append)
    assert len(steps) == 7 + BATCH_ROUNDS
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
