"""Promotion through the gate and back, on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy as sa
from bundles import SENTIMENT, tiny_bundle
from sqlalchemy.exc import DBAPIError

from app.promotion import promoting
from app.promotion.judging import judge
from app.promotion.promoting import all_live, find_live, history_of, promote, roll_back
from app.settings import Settings
from app.store.audit import latest_events
from app.store.database import connect, open_database, reading
from app.store.models import Move
from model.bundle import Bundle
from model.errors import BadBundle, BadInput, UnknownModel
from model.runtime.base import classify
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot, write_snapshot
from model.text import Normaliser, sample_id
from model.types import Sample, Split, Task, Taxonomy, Text

TEXTS = [
    "".join(words)
    for words in product(("房间", "早餐", "酒店", "价格"), "很不也", ("干净", "吵闹", "好", "差", "便宜"))
]


@pytest.fixture
def engine(settings: Settings) -> Iterator[sa.Engine]:
    with open_database(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("bundles") / "good", name="good")


@pytest.fixture(scope="module")
def as_good(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("bundles") / "as-good", name="as-good")


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("bundles") / "bad", name="bad", seed=11)


@pytest.fixture(scope="module")
def snapshot(good: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Texts whose labels are what the good bundle says."""
    said = classify(OnnxClassifier.load(good), [Text(text) for text in TEXTS])
    samples = [
        Sample(sample_id(text), text, None, (prediction.label,), Split.TEST)
        for text, prediction in zip(TEXTS, said, strict=True)
    ]
    samples.sort(key=lambda sample: sample.id)
    folder = tmp_path_factory.mktemp("snapshots")
    return write_snapshot(samples, taxonomy=SENTIMENT, normaliser=Normaliser(), folder=folder)


def promoted(engine: sa.Engine, bundle: Bundle, snapshot: Snapshot, **options: Any) -> Move:
    asked = {"model": "评论", "alias": "champion", "split": Split.TEST, "margin": 0.005, "by": "甲", **options}
    return promote(engine, bundle, snapshot=snapshot, **asked)[0]


def test_the_first_is_live_and_one_as_good_takes_its_place_and_gives_it_back(
    engine: sa.Engine, good: Bundle, as_good: Bundle, snapshot: Snapshot
) -> None:
    first = promoted(engine, good, snapshot)
    assert (first.number, first.version, first.verdict["champion"]) == (1, good.version, None)
    assert first.verdict["challenger"] == 1.0
    second = promoted(engine, as_good, snapshot)
    assert second.verdict["champion"] == 1.0
    assert find_live(engine, "评论").version == as_good.version
    assert [move.version for move in all_live(engine)] == [as_good.version]
    back = roll_back(engine, model="评论", alias="champion", by="乙", note="误上线")
    assert (back.action, back.version, back.number) == ("rollback", good.version, 3)
    assert find_live(engine, "评论@champion").version == good.version
    with pytest.raises(BadInput, match="there is nothing to go back to"):
        roll_back(engine, model="评论", alias="champion", by="乙")
    again = promoted(engine, as_good, snapshot)
    assert again.number == 4
    assert find_live(engine, "评论").version == as_good.version
    with connect(engine) as connection, reading(connection):
        told = [(event.actor, event.action, event.target) for event in latest_events(connection, 10)]
    assert told[:3] == [
        ("甲", "model.promote", "评论@champion"),
        ("乙", "model.rollback", "评论@champion"),
        ("甲", "model.promote", "评论@champion"),
    ]


def test_a_worse_one_is_refused_with_figures_and_forced_only_with_a_reason(
    engine: sa.Engine, good: Bundle, bad: Bundle, snapshot: Snapshot
) -> None:
    verdict = judge(bad, good, snapshot, split=Split.TEST, margin=0.005)
    assert not verdict.passed
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < verdict.challenger - 1.0 < verdict.high < 0
    promoted(engine, good, snapshot)
    with pytest.raises(BadInput, match=r"is not promoted: accuracy .* does not rule out that it is worse"):
        promoted(engine, bad, snapshot)
    with pytest.raises(BadInput, match="--force needs a --note"):
        promoted(engine, bad, snapshot, force=True)
    assert find_live(engine, "评论").version == good.version
    move = promoted(engine, bad, snapshot, force=True, note="演练")
    assert (move.verdict["forced"], move.note) == (True, "演练")
    assert find_live(engine, "评论").version == bad.version


def test_of_two_admins_at_once_one_is_told_to_look_again(
    engine: sa.Engine, good: Bundle, as_good: Bundle, bad: Bundle, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    promoted(engine, good, snapshot)
    both_have_judged = Barrier(2)

    def judged_together(*arguments: object, **options: object) -> object:
        verdict = judge(*arguments, **options)  # type: ignore[arg-type]
        both_have_judged.wait(timeout=60)
        return verdict

    monkeypatch.setattr(promoting, "judge", judged_together)

    def attempt(bundle: Bundle) -> str:
        try:
            return promoted(engine, bundle, snapshot, force=True, note="同时").version
        except BadInput as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(attempt, (as_good, bad)))
    (refused,) = [outcome for outcome in outcomes if "moved in the meantime by somebody else" in outcome]
    assert "wenlei models show 评论" in refused
    assert [move.number for move in history_of(engine, "评论", "champion")] == [1, 2]
    assert find_live(engine, "评论").version in outcomes


def test_what_can_t_be_promoted(engine: sa.Engine, good: Bundle, snapshot: Snapshot, tmp_path: Path) -> None:
    other = tiny_bundle(tmp_path / "other", taxonomy=Taxonomy(Task.SINGLE, ("好", "坏")))
    with pytest.raises(BadInput, match="knows other labels than snapshot"):
        promoted(engine, other, snapshot)
    with pytest.raises(BadInput, match="--model 'a b': a name is"):
        promoted(engine, good, snapshot, model="a b")
    with pytest.raises(BadInput, match="no dev samples to judge by"):
        promoted(engine, good, snapshot, split=Split.DEV)
    promoted(engine, good, snapshot)
    with pytest.raises(BadInput, match="is 评论@champion already"):
        promoted(engine, good, snapshot)
    with pytest.raises(UnknownModel, match="no bundle is live as 别的@champion"):
        find_live(engine, "别的")
    with pytest.raises(UnknownModel, match="there is no 别的@champion"):
        roll_back(engine, model="别的", alias="champion", by="甲")


def test_a_bundle_that_was_replaced_in_its_folder_is_not_served(
    engine: sa.Engine, snapshot: Snapshot, tmp_path: Path
) -> None:
    bundle = tiny_bundle(tmp_path / "bundle", name="first")
    promoted(engine, bundle, snapshot)
    bundle.path.rename(tmp_path / "away")
    with pytest.raises(BadBundle, match="is not a bundle"):
        find_live(engine, "评论")
    tiny_bundle(tmp_path / "bundle", name="second")
    with pytest.raises(BadBundle, match=f"评论@champion was {bundle.version}"):
        find_live(engine, "评论")


def test_moves_can_t_be_changed(engine: sa.Engine, good: Bundle, snapshot: Snapshot) -> None:
    promoted(engine, good, snapshot)
    for statement in ("UPDATE model_moves SET actor = '丙'", "DELETE FROM model_moves"):
        with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
            connection.execute(sa.text(statement))
