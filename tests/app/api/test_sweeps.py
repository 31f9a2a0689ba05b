"""List and undo sweeps over a real socket, on both databases."""

import httpx
import pytest

from app.library.sweeping import apply_sweep
from app.store.sweeps import SweptLabels
from model.text import sample_id
from tests.app.library.workshop import Workshop

PATH = "/v1/libraries/hotel"


@pytest.fixture
def sweep(workshop: Workshop) -> int:
    workshop.load(workshop.write("a.csv", "text,label\n房间很大,好评\n早餐凉了,好评\n隔音很差,差评\n"), library="hotel")
    return apply_sweep(
        workshop.engine,
        library="hotel",
        kind="relabel",
        actor="linear@1a2b",
        rows=[SweptLabels(sample_id("早餐凉了"), ("差评",), 0.9)],
        judged={sample_id("早餐凉了"): ("好评",)},
        asked={"min_confidence": 0.8},
        outcome={},
        by="标注员甲",
        version=1,
    ).sweep


def label(operate: httpx.Client) -> list[str] | None:
    found: list[str] | None = operate.get(f"/v1/samples/{sample_id('早餐凉了')}?library=hotel").json()["labels"]
    return found


def test_a_sweep_is_listed_undone_and_brought_back(operate: httpx.Client, sweep: int) -> None:
    (listed,) = operate.get(f"{PATH}/sweeps").json()["sweeps"]
    assert (listed["kind"], listed["actor"], listed["outcome"]["changed"]) == ("relabel", "linear@1a2b", 1)
    assert label(operate) == ["差评"]
    undone = operate.post(f"{PATH}/sweeps/{sweep}/undo", json={"note": "看错了"}).json()
    assert (undone["undoes"], undone["changed"]) == (sweep, 1)
    assert label(operate) == ["好评"]
    assert operate.get(f"{PATH}/sweeps").json()["sweeps"][0]["undone_by"] == undone["sweep"]
    operate.post(f"{PATH}/sweeps/{undone['sweep']}/undo")
    assert label(operate) == ["差评"]


def test_a_sweep_that_is_not_there_or_undone_is_refused(operate: httpx.Client, sweep: int) -> None:
    missing = operate.post(f"{PATH}/sweeps/{sweep + 5}/undo")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "unknown_sweep")
    operate.post(f"{PATH}/sweeps/{sweep}/undo")
    again = operate.post(f"{PATH}/sweeps/{sweep}/undo")
    assert (again.status_code, again.json()["error"]["code"]) == (422, "bad_input")
