"""`wenlei library suggest`: which samples to label next, and, if asked to, into the review queue with them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.cli.agreeing import LibraryName, examples, line
from app.library.scoring import pool_size
from app.library.selecting import Strategy
from app.library.shapes.suggestions import suggestions_shape
from app.library.suggesting import Plan, Suggestion, Suggestions, queue_suggestions, suggest
from app.people.accounts import check_person
from app.serving.registry import load_classifier
from app.settings import Settings, load_settings
from app.store.database import open_database
from app.store.reviews import Queued
from model.bundle import open_bundle
from model.console import JsonFlag, emit, progress
from model.errors import BadInput
from model.runtime.base import Classifier

SUGGEST_EXAMPLES = examples(
    ("还没有模型时从这里开始 where to begin without a model", "wenlei library suggest --count 200"),
    ("有了模型 with a model", "wenlei library suggest --bundle var/bundles/reviews --count 100"),
    (
        "送去复核 into review",
        "wenlei library suggest --bundle var/bundles/reviews --count 100 --to-review --by 标注员甲",
    ),
)


def suggest_samples(
    count: Annotated[int, typer.Option(help="推荐几条 | how many")],
    bundle: Annotated[
        Path | None, typer.Option(help="模型包目录；没有模型则不写 | folder of the bundle, if any")
    ] = None,
    strategy: Annotated[
        Strategy, typer.Option(help="挑选办法；margin、entropy 需要模型 | how; margin and entropy need a bundle")
    ] = Strategy.DIVERSITY,
    seed: Annotated[int, typer.Option(help="随机种子 | seed of what goes by lot")] = 0,
    among: Annotated[
        int | None, typer.Option(help="只从抽签抽出的若干条里挑，默认全部 | look at so many, drawn by lot; default all")
    ] = None,
    to_review: Annotated[
        bool, typer.Option("--to-review", help="送入复核队列 | put them into the review queue")
    ] = False,
    by: Annotated[
        str | None, typer.Option(help="由谁送去复核：wenlei 用户 | who puts them there: a user, see wenlei user create")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="精度（fp32、int8），默认最小的 | precision, by default the smallest")
    ] = None,
    library: LibraryName = "default",
    as_json: JsonFlag = False,
) -> None:
    """推荐接下来标注哪些样本（主动学习） | suggest which samples to label next (active learning)."""
    plan = Plan(count=count, strategy=strategy, seed=seed, among=among)
    if to_review != (by is not None):
        raise BadInput("--to-review and --by go together: give both, or neither")
    settings = load_settings(precision=precision)
    classifier = _classifier(bundle, settings)
    with open_database(settings) as engine:
        person = check_person(engine, by) if by is not None else None
        size = pool_size(engine, library) if among is None else min(among, pool_size(engine, library))
        with progress("判断 | judging", size) as advance:
            found = suggest(engine, library=library, classifier=classifier, plan=plan, on_samples=advance)
        queued = queue_suggestions(engine, found, by=person) if person is not None else None
    emit(suggestions_shape(found, queued), as_json=as_json, render=lambda console: _show(console, found, queued))


def _classifier(bundle: Path | None, settings: Settings) -> Classifier | None:
    return load_classifier(open_bundle(bundle), settings) if bundle else None


def _show(console: Console, found: Suggestions, queued: Queued | None) -> None:
    """A line for each, and below it what they were chosen from."""
    for each in found.suggestions:
        line(console, f"{each.sample.id}  {_judgement(each)}{_text(each)}")
    waiting = f"  已在复核 in review {found.waiting:,}" if found.waiting else ""
    line(
        console,
        f"推荐 suggested {len(found.suggestions):,} / {found.pool:,}{waiting}  "
        f"{found.plan.strategy} seed {found.plan.seed}",
    )
    if queued:
        line(console, f"送入复核 queued: 新增 new {queued.added:,}  提前 raised {queued.raised:,}")


def _judgement(each: Suggestion) -> str:
    if each.uncertainty is None:
        return ""
    labels = " ".join(f"{label} {score:.3f}" for label, score in each.best)
    return f"{each.uncertainty:.3f}  {labels}  "


def _text(each: Suggestion) -> str:
    return each.sample.text if each.sample.pair is None else f"{each.sample.text} ‖ {each.sample.pair}"
