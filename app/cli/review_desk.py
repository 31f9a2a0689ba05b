"""`wenlei review start`: one text at a time, a key or a name for each.

Lines are read from the terminal or from whatever stands in for it, so that a file of keys does the same.
"""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import sqlalchemy as sa
from rich.console import Console

from app.cli.agreeing import line
from app.cli.review_views import ACTIONS, show_decided, show_review
from app.library.cells import label_name, label_names
from app.library.review.claiming import claim_item, claim_next, release_item
from app.library.review.deciding import Decided, accept, change, none_fits, skip, undo_decision
from app.library.review.overview import list_reviews
from app.library.review.viewing import Review
from app.store.database import connect, reading
from app.store.libraries import LibraryDefinition, get_library
from model.errors import BadInput, ItemTaken, UnknownReview

SHOWN_CLASSES = 20  # more are found by typing a piece of the name
MOST_OFFERED = 100
KEYS = (
    "回车或 a 接受，编号、名称、编码或别名改标签，n 都不是，s 跳过，u 撤回上一条，q 结束，? 全部类别；"
    "=a 指名为 a 的类别",
    "Enter or a accepts, a number, name, code or alias changes, n none of these, s skips, u takes the last one back, "
    "q quits, ? shows all classes; =a is the class named a",
)
_PARTS = re.compile(r"[\s+、,，;；]+")


@dataclass(slots=True)
class Desk:
    """A person at work: whose items, for how long, and where they are shown. decided: their items, the last one last.

    offered: the classes that numbers mean.
    """

    engine: sa.Engine
    library: str
    person: str
    reason: str | None
    lease: timedelta
    console: Console
    decided: list[int] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    offered: Sequence[str] = ()

    def say(self, text: str) -> None:
        """A line for the person."""
        line(self.console, text)


def work_through(desk: Desk) -> dict[str, object]:
    """Give the person one item after the other until they quit or nothing is left; how often they did what.

    Raises:
        UnknownLibrary: there is no such library.
    """
    left = list_reviews(desk.engine, library=desk.library, reason=desk.reason, limit=1).total
    for keys in KEYS:
        desk.say(keys)
    review = _next(desk)
    while review is not None:
        _show(desk, review, left)
        review = _until_decided(desk, review)
    made = {action: desk.done[action] for action in ("accept", "change", "none", "skip", "undo")}
    desk.say("  ".join(f"{ACTIONS[action]} {action} {times:,}" for action, times in made.items()))
    return {"library": desk.library, "by": desk.person, **made}


def _next(desk: Desk) -> Review | None:
    found = claim_next(desk.engine, library=desk.library, by=desk.person, reason=desk.reason, lease=desk.lease)
    if found is None:
        desk.say("没有可复核的了 | nothing is left to review")
    return found


def _until_decided(desk: Desk, review: Review) -> Review | None:
    """Ask until the person has decided; what they look at next, or None when they quit."""
    while True:
        typed = sys.stdin.readline()
        key = typed.strip()
        try:
            if not typed or key == "q":  # the end of the input
                _give_back(desk, review)
                return None
            if key == "u":
                return _take_back(desk, review)
            done = _decide(desk, review, key)
        except (ItemTaken, UnknownReview) as error:  # the lease ran out in mid-review
            desk.say(f"! {error}")
            return _claimed(desk, review.item.id)
        except BadInput as error:
            desk.say(f"! {error}")
            continue
        if done is not None:
            desk.decided.append(review.item.id)
            desk.done[done.action] += 1
            show_decided(desk.console, done)
            return _next(desk)


def _decide(desk: Desk, review: Review, key: str) -> Decided | None:
    """What the key asks for; None where it only asked what there is."""
    item = review.item.id
    if key in ("", "a"):
        return accept(desk.engine, item, by=desk.person)
    if key == "n":
        return none_fits(desk.engine, item, by=desk.person)
    if key == "s":
        return skip(desk.engine, item, by=desk.person)
    definition = _definition(desk)
    if key == "?":
        _offer(desk, definition.taxonomy.labels)
        return None
    labels = _meant(desk, definition, key)
    return change(desk.engine, item, labels, by=desk.person) if labels else None


def _meant(desk: Desk, definition: LibraryDefinition, key: str) -> list[str]:
    """The labels that were typed; none where they leave it open, and those that could be meant are offered."""
    forced, names = key.startswith("="), label_names(definition)
    whole = label_name(key.removeprefix("="))
    parts = [whole]
    if whole not in names and definition.taxonomy.multiple:
        parts = [part for part in _PARTS.split(whole) if part]
    found = [_one(desk, names, part, forced) for part in parts]
    labels = [label for label in found if label is not None]
    if len(labels) == len(parts):
        return labels
    unknown = parts[found.index(None)]
    close = [label for label in definition.taxonomy.labels if any(unknown in name for name in _called(names, label))]
    if close:
        _offer(desk, close)
    else:
        desk.say(f"! 没有类别含有 | no class is called like {unknown!r}; ? 全部类别 shows all")
    return []


def _one(desk: Desk, names: dict[str, str], part: str, forced: bool) -> str | None:
    if part.isascii() and part.isdigit() and not forced and 1 <= int(part) <= len(desk.offered):
        return desk.offered[int(part) - 1]
    return names.get(part)


def _called(names: dict[str, str], label: str) -> list[str]:
    return [name for name, meant in names.items() if meant == label]


def _take_back(desk: Desk, review: Review) -> Review | None:
    """Undo the last decision of this sitting, and look at its item again."""
    if not desk.decided:
        raise BadInput("这次还没有决定可撤回 | nothing was decided in this sitting; see wenlei review undo")
    item = desk.decided[-1]
    show_decided(desk.console, undo_decision(desk.engine, item, by=desk.person))
    desk.decided.pop()
    desk.done["undo"] += 1
    _give_back(desk, review)
    return _claimed(desk, item)


def _give_back(desk: Desk, review: Review) -> None:
    with suppress(ItemTaken, UnknownReview):  # the lease ran out, and somebody else has it by now
        release_item(desk.engine, review.item.id, by=desk.person)


def _claimed(desk: Desk, item: int) -> Review | None:
    """The item once more, or the next one if somebody else has it by now."""
    try:
        return claim_item(desk.engine, item, by=desk.person, lease=desk.lease)
    except (ItemTaken, UnknownReview) as error:
        desk.say(f"! {error}")
        return _next(desk)


def _show(desk: Desk, review: Review, left: int) -> None:
    decided = len(desk.decided)
    desk.say("")
    desk.say(f"── 已决定 done {decided:,}  还剩约 left about {max(left - decided, 1):,} ──")
    show_review(desk.console, review)
    labels = _definition(desk).taxonomy.labels
    if len(labels) <= SHOWN_CLASSES:
        _offer(desk, labels)
    else:
        desk.offered = ()
        desk.say(f"  {len(labels):,} 类：键入名称的一部分 | classes: type a piece of the name")


def _offer(desk: Desk, labels: Sequence[str]) -> None:
    """Number classes, so that a number will do."""
    desk.offered = labels
    more = len(labels) - MOST_OFFERED
    shown = [f"{number} {label}" for number, label in enumerate(labels[:MOST_OFFERED], start=1)]
    desk.say("  " + "  ".join(shown) + (f"  … 另有 {more:,} | {more:,} more" if more > 0 else ""))


def _definition(desk: Desk) -> LibraryDefinition:
    with connect(desk.engine) as connection, reading(connection):
        return get_library(connection, desk.library).definition
