"""`wenlei review …`: people look at the samples where a look is worth most; a person has an item for a while."""

from datetime import timedelta
from typing import Annotated

import typer
from rich.console import Console

from app.cli.agreeing import LibraryName, Note, examples, line
from app.cli.review_desk import Desk, work_through
from app.cli.review_views import show_decided, show_review, show_reviews, show_stats
from app.library.review.claiming import LEASE, claim_item, claim_next, release_item
from app.library.review.deciding import Decided, accept, change, none_fits, skip, undo_decision
from app.library.review.overview import list_reviews, review_stats
from app.library.review.queueing import Reason, queue_by_hand
from app.library.shapes.reviews import (
    claimed_shape,
    decided_shape,
    queued_by_hand_shape,
    released_shape,
    review_stats_shape,
    reviews_shape,
)
from app.people.accounts import check_person
from app.settings import load_settings
from app.store.database import open_database
from model.console import JsonFlag, emit, messages

MINUTES = int(LEASE.total_seconds()) // 60
MAX_MINUTES = 24 * 60

app = typer.Typer(
    no_args_is_help=True,
    help="复核：领取、接受、改标签、跳过 | review: claim, accept, change, skip",
    epilog=examples(
        ("一条一条地看 | one text at a time", "wenlei review start --by 标注员甲"),
        (
            "供脚本使用 | for scripts",
            "wenlei review claim --by 标注员甲 --json",
            "wenlei review accept 7 --by 标注员甲",
        ),
        ("把样本加入复核 | ask for a review", "wenlei review add 9f8a07dd --by 标注员甲"),
    ),
)

Person = Annotated[str, typer.Option(help="复核人：wenlei 用户 | who reviews: a user, see wenlei user create")]
Item = Annotated[int, typer.Argument(min=1, max=2**63 - 1, help="复核项编号，见 list | number of the item, see list")]
Why = Annotated[Reason | None, typer.Option(help="只要此缘由的 | only those for this reason")]
Minutes = Annotated[
    int, typer.Option(min=1, max=MAX_MINUTES, help="领取几分钟，到期他人可领 | minutes until others may have it")
]


@app.command()
def start(
    by: Person,
    reason: Why = None,
    lease: Minutes = MINUTES,
    library: LibraryName = "default",
    as_json: JsonFlag = False,
) -> None:
    """一条一条地复核：回车接受，数字或名称改标签，n 都不是，s 跳过，u 撤回，q 结束 | review one text at a time."""
    with open_database(load_settings()) as engine:
        desk = Desk(
            engine=engine,
            library=library,
            person=check_person(engine, by),
            reason=reason,
            lease=timedelta(minutes=lease),
            console=messages if as_json else Console(markup=False, emoji=False),
        )
        done = work_through(desk)
    if as_json:
        emit(done, as_json=True)


@app.command("list")
def list_open(
    reason: Why = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="最多显示几条 | at most so many")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="跳过前几条 | after the first so many")] = 0,
    library: LibraryName = "default",
    as_json: JsonFlag = False,
) -> None:
    """待复核的样本，价值最高者在前 | what is to be reviewed, what is worth most first."""
    with open_database(load_settings()) as engine:
        page = list_reviews(engine, library=library, reason=reason, limit=limit, offset=offset)
    emit(reviews_shape(library, page), as_json=as_json, render=lambda console: show_reviews(console, page, offset))


@app.command()
def claim(
    by: Person,
    item: Annotated[
        int | None,
        typer.Argument(min=1, max=2**63 - 1, help="复核项编号，省略为下一条 | number of the item; by default the next"),
    ] = None,
    reason: Why = None,
    lease: Minutes = MINUTES,
    library: LibraryName = "default",
    as_json: JsonFlag = False,
) -> None:
    """领取一条，一段时间内归你 | have an item, or the next one, for a while."""
    with open_database(load_settings()) as engine:
        person, until = check_person(engine, by), timedelta(minutes=lease)
        if item is None:
            review = claim_next(engine, library=library, by=person, reason=reason, lease=until)
        else:
            review = claim_item(engine, item, by=person, lease=until)
    emit(claimed_shape(review), as_json=as_json, render=lambda console: show_review(console, review))


@app.command("accept")
def accept_item(item: Item, by: Person, note: Note = None, as_json: JsonFlag = False) -> None:
    """接受建议的标签；没有建议则确认当前标签 | accept what is proposed, or the label there is."""
    with open_database(load_settings()) as engine:
        done = accept(engine, item, by=check_person(engine, by), note=note)
    _tell(done, as_json=as_json)


@app.command("change")
def change_item(
    item: Item,
    labels: Annotated[list[str], typer.Argument(metavar="LABEL...", help="标签；层级标签写完整路径 | the labels")],
    by: Person,
    note: Note = None,
    as_json: JsonFlag = False,
) -> None:
    """改为别的标签 | decide other labels."""
    with open_database(load_settings()) as engine:
        done = change(engine, item, labels, by=check_person(engine, by), note=note)
    _tell(done, as_json=as_json)


@app.command("none")
def none_item(item: Item, by: Person, note: Note = None, as_json: JsonFlag = False) -> None:
    """都不是：不属于任何类别，没有标签 | it belongs to none of the classes, and has no label."""
    with open_database(load_settings()) as engine:
        done = none_fits(engine, item, by=check_person(engine, by), note=note)
    _tell(done, as_json=as_json)


@app.command("skip")
def skip_item(item: Item, by: Person, note: Note = None, as_json: JsonFlag = False) -> None:
    """跳过，留给别人 | leave it to others."""
    with open_database(load_settings()) as engine:
        done = skip(engine, item, by=check_person(engine, by), note=note)
    _tell(done, as_json=as_json)


@app.command("undo")
def undo_item(item: Item, by: Person, note: Note = None, as_json: JsonFlag = False) -> None:
    """撤回自己对此项的决定，它重新待复核 | take back a decision of your own; the item is open again."""
    with open_database(load_settings()) as engine:
        done = undo_decision(engine, item, by=check_person(engine, by), note=note)
    _tell(done, as_json=as_json)


@app.command()
def release(item: Item, by: Person, as_json: JsonFlag = False) -> None:
    """放回，别人即可领取 | give it back, so that others get it."""
    with open_database(load_settings()) as engine:
        released = release_item(engine, item, by=check_person(engine, by))
    emit(
        released_shape(released),
        as_json=as_json,
        render=lambda console: line(console, f"已放回 | given back: {released.id}"),
    )


@app.command()
def stats(library: LibraryName = "default", as_json: JsonFlag = False) -> None:
    """待复核与已复核的数量、缘由，今天各人做了多少 | how the review stands, and who did what today."""
    with open_database(load_settings()) as engine:
        found = review_stats(engine, library=library)
    emit(review_stats_shape(library, found), as_json=as_json, render=lambda console: show_stats(console, found))


@app.command()
def add(
    samples: Annotated[
        list[str],
        typer.Argument(
            metavar="SAMPLE...", help="样本编号或其开头；加 --text 则为文本 | ids of samples, or beginnings"
        ),
    ],
    by: Person,
    value: Annotated[float, typer.Option(min=0, max=1, help="看一眼的价值，越大越靠前 | what a look is worth")] = 1.0,
    is_text: Annotated[bool, typer.Option("--text", help="SAMPLE 是文本本身 | SAMPLE is the text itself")] = False,
    library: LibraryName = "default",
    as_json: JsonFlag = False,
) -> None:
    """把样本加入复核 | ask for a review of samples, all of them or none."""
    with open_database(load_settings()) as engine:
        queued = queue_by_hand(
            engine, library=library, samples=samples, is_text=is_text, value=value, by=check_person(engine, by)
        )
    emit(queued_by_hand_shape(library, queued), as_json=as_json)


def _tell(done: Decided, *, as_json: bool) -> None:
    emit(decided_shape(done), as_json=as_json, render=lambda console: show_decided(console, done))
