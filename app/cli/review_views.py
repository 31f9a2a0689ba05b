"""How people read the review queue: an item, a page of them, a decision, and how the review stands."""

from collections.abc import Mapping

from rich.console import Console

from app.cli.agreeing import line
from app.library.review.deciding import Decided
from app.library.review.overview import ReviewPage, ReviewStats
from app.library.review.queueing import Reason
from app.library.review.viewing import Review

SHOWN_ID = 8  # digits: enough to name a sample
REASONS: Mapping[str, str] = {
    Reason.CONFLICT: "意见不一",
    Reason.DUPLICATE: "近似文本标签不同",
    Reason.LABEL_ERROR: "标签可能有误",
    Reason.HARD: "模型拿不准",
    Reason.OUTLIER: "与众不同",
    Reason.OFF_TAXONOMY: "可能不属于任何类别",
    Reason.UNSURE: "未达自动接受的门槛",
    Reason.SUGGESTED: "标注它最有帮助",
    Reason.BY_HAND: "有人要求",
}
ACTIONS = {"accept": "接受", "change": "改标签", "none": "都不是", "skip": "跳过", "undo": "撤回"}
NONE = "（无 none）"


def show_review(console: Console, review: Review | None) -> None:
    """An item as its reviewer needs it: the text, its label, what is proposed, and why it is here."""
    if review is None:
        line(console, "没有可复核的了 | nothing is left to review")
        return
    item = review.item
    line(console, review.text)
    if review.pair is not None:
        line(console, f"‖ {review.pair}")
    conflict = "（有分歧 in conflict）" if review.current and review.current.conflict else ""
    line(console, f"  当前 now       {_labels(review.labels)}{conflict}")
    sure = f"  {item.confidence:.0%}" if item.confidence is not None else ""
    by = f"  {item.proposed_by}" if item.proposed_by and review.proposed else ""
    line(console, f"  建议 proposed  {_labels(review.proposed)}{sure if review.proposed else ''}{by}")
    line(console, f"  缘由 reason    {reason_name(item.reason)}")
    if review.persons > 1:
        line(console, f"  须 {review.persons} 人意见一致 | {review.persons} persons have to agree")
    until = f"，到 until {item.lease_until}" if item.lease_until else ""
    line(console, f"  编号 item      {item.id}{until}")


def show_reviews(console: Console, page: ReviewPage, offset: int) -> None:
    """Of each item its number, value and reason, then its labels and text; and which these are, of how many."""
    for review in page.reviews:
        item = review.item
        text = review.text if review.pair is None else f"{review.text} ‖ {review.pair}"
        held = f"  领取人 claimed by {item.claimed_by}" if item.claimed_by else ""
        line(console, f"{item.id}  {item.value:.3f}  {item.sample_id[:SHOWN_ID]}  {reason_name(item.reason)}{held}")
        proposed = f" → {_labels(review.proposed)}" if review.proposed else ""
        line(console, f"    {_labels(review.labels)}{proposed}  {text}")
    shown = f"{offset + 1:,}–{offset + len(page.reviews):,}" if page.reviews else "0"
    line(console, f"{shown} / {page.total:,}")


def show_decided(console: Console, done: Decided) -> None:
    """What was done with an item, and what its label is now."""
    said = f" {_labels(done.decided)}" if done.decided else ""
    line(console, f"{ACTIONS[done.action]} {done.action}{said}  编号 item {done.item.id}")
    if done.waits:
        line(console, "  等另一人意见一致后生效 | in force when another person decides the same")
    elif done.action != "skip":
        event = f"  事件 event {done.event}" if done.event else ""
        line(console, f"  当前 now {_labels(done.current.labels if done.current else ())}{event}")


def show_stats(console: Console, stats: ReviewStats) -> None:
    """How many items are in which state, why, and who did what today."""
    done, settled = stats.states.get("done", 0), stats.states.get("settled", 0)
    line(
        console,
        f"待复核 open {stats.open:,}（已领取 held {stats.held:,}）  已复核 done {done:,}  另行解决 settled {settled:,}",
    )
    for reason, count in sorted(stats.reasons.items(), key=lambda each: -each[1]):
        line(console, f"  {reason_name(reason)}  {count:,}")
    line(
        console,
        "今天（UTC）| today, in UTC" if stats.today else "今天还没有人复核（UTC）| nobody reviewed today, in UTC",
    )
    for person, actions in stats.today.items():
        did = "  ".join(f"{ACTIONS[action]} {action} {count:,}" for action, count in actions.items())
        line(console, f"  {person}  {did}")


def reason_name(reason: str) -> str:
    """A reason in Chinese and as options take it."""
    return f"{REASONS[reason]} {reason}" if reason in REASONS else reason


def _labels(labels: tuple[str, ...] | None) -> str:
    return " + ".join(labels or ()) or NONE
