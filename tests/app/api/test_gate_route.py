"""POST /v1/libraries/{name}/label over a real socket, on both databases, with a model that is served."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.api import gate
from app.settings import Settings
from model.types import Task, Taxonomy
from tests.app.api.operating import operating
from tests.app.library.workshop import Workshop
from tests.bundles import tiny_bundle
from tests.gating import keyword_bundle, made_up

PATH = "/v1/libraries/hotel/label"
WORDS = {"好评": "好", "差评": "差"}
ASKED = {"model": "words", "max_error": 0.05}


@pytest.fixture
def operator(workshop: Workshop, settings: Settings, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client that operates a server with two models, of which one was trained on a snapshot of the library."""
    rows = [(*row, "train") for row in made_up(20, WORDS, seed=1)] + [
        (*row, "test") for row in made_up(300, WORDS, seed=3)
    ]
    sheet = io.StringIO()
    csv.writer(sheet).writerows([("text", "label", "split"), *rows])
    workshop.load(workshop.write("a.csv", sheet.getvalue()), library="hotel", split="split")
    frozen = workshop.freeze("hotel").snapshot
    pool = "\n".join(text for text, _ in made_up(100, WORDS, seed=4))
    workshop.load(workshop.write("pool.csv", f"text\n{pool}\n"), library="hotel", label=None)
    bundles = (
        keyword_bundle(tmp_path / "words", taxonomy=frozen.taxonomy, words=WORDS, snapshot=frozen.hash),
        tiny_bundle(tmp_path / "tiny", taxonomy=frozen.taxonomy),
        tiny_bundle(tmp_path / "foreign", name="foreign", taxonomy=Taxonomy(Task.SINGLE, ("好评", "中评"))),
    )
    with operating(workshop, settings, bundles) as client:
        yield client


def test_a_served_model_labels_the_rest_and_it_is_taken_back(operator: httpx.Client) -> None:
    looked = operator.post(PATH, json=ASKED | {"dry_run": True}).json()
    assert (looked["dry_run"], looked["sweep"], looked["pool"]) == (True, None, 100)
    assert operator.get("/v1/libraries/hotel/sweeps").json()["sweeps"] == []
    done = operator.post(PATH, json=ASKED).json()
    assert done["rules"] == looked["rules"]
    assert done["accepted"] > 50
    assert done["queued"] == 100 - done["accepted"]
    (sweep,) = operator.get("/v1/libraries/hotel/sweeps").json()["sweeps"]
    assert (sweep["kind"], sweep["by"]) == ("gate", "operator")
    undone = operator.post(f"/v1/libraries/hotel/sweeps/{done['sweep']}/undo", json={}).json()
    assert undone["changed"] == done["accepted"]


REFUSED: list[tuple[dict[str, object], int, str, str]] = [
    ({"model": "words"}, 422, "bad_input", "max_error"),
    (ASKED | {"max_error": 0}, 422, "bad_input", "max_error"),
    (ASKED | {"max_eror": 0.1}, 422, "bad_input", "max_eror"),
    (ASKED | {"split": "train"}, 422, "bad_input", "the model was trained on it"),
    (ASKED | {"calibration": "../snapshots"}, 422, "bad_input", "calibration"),
    (ASKED | {"calibration": "ffff"}, 422, "bad_snapshot", "no snapshot on record begins with ffff"),
    (ASKED | {"model": "other"}, 404, "unknown_model", "only words, tiny, foreign"),
    (ASKED | {"model": "tiny"}, 422, "bad_input", "nobody can tell which samples the model has seen"),
    (ASKED | {"model": "foreign"}, 422, "bad_taxonomy", "another taxonomy than library 'hotel'"),
]


def test_what_can_not_be_asked_for_is_refused(operator: httpx.Client) -> None:
    for body, status, code, message in REFUSED:
        answer = operator.post(PATH, json=body)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, code), error
        assert message in error["message"]
    assert operator.get("/v1/libraries/hotel/sweeps").json()["sweeps"] == []


def test_a_snapshot_that_is_gone_is_named_without_the_folder_that_the_server_had_it_in(
    operator: httpx.Client, workshop: Workshop
) -> None:
    (snapshot,) = (workshop.home / "snapshots").iterdir()
    snapshot.rename(workshop.home / "moved")
    for path, body in ((PATH, ASKED), ("/v1/libraries/hotel/doctor", {"snapshot": snapshot.name})):
        answer = operator.post(path, json=body)
        message = answer.json()["error"]["message"]
        assert answer.status_code == 422
        assert f"was at snapshots/{snapshot.name}, which is gone" in message
        assert str(workshop.home) not in message


def test_what_the_gate_accepted_before_counts_among_what_one_request_may_have_judged(
    operator: httpx.Client, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MAX_POOL", 100)  # as large as the pool
    assert operator.post(PATH, json=ASKED).json()["accepted"] > 50
    workshop.load(workshop.write("more.csv", "text\n晚餐\n"), library="hotel", label=None)
    refused = operator.post(PATH, json=ASKED).json()["error"]
    assert refused["code"] == "bad_input"
    assert "101 samples of library 'hotel' have no label or one that the gate gave" in refused["message"]
