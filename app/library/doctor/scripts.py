"""Scripts: in which languages and writing systems the texts are, and whether traditional and simplified are mixed."""

import numpy as np

from app.library.doctor.census import Census
from app.library.doctor.findings import Example, Finding, Kind, Severity
from app.library.doctor.measures import WRITING_SYSTEMS, CharacterCounts, Measures, Script
from app.library.doctor.shares import EXAMPLES, percent
from app.library.review.queueing import Reason
from app.store.reviews import Wanted
from model.metrics import BoolArray
from model.reports.plots import bars
from model.types import FloatArray, IntArray

# Of all texts. A model learns little of a language that one text in a hundred is in; at one in twenty, they should be a
# library of their own.
SERIOUS = 0.05
MIXED = 0.001  # of texts that are traditional in a simplified library, or the other way round: worth unifying
JAPANESE = 0.2  # of the characters: with so many kana, Chinese characters are Japanese ones
LETTERS = 2  # fewer tell no language
ALPHABETIC = 4  # letters of an alphabet say about as much as one Chinese character
TELLING = 2  # characters that only one of traditional and simplified Chinese has
VALUE = 0.3  # of a look: whoever reads it decides first whether it belongs here at all
ALPHABETS = (Script.LATIN, Script.CYRILLIC, Script.OTHER)
PARTS = {
    **WRITING_SYSTEMS,
    "数字 digits": (Script.DIGITS,),
    "标点 punctuation": (Script.MARKS,),
    "表情 emoji": (Script.EMOJI,),
    "乱码 broken": (Script.BROKEN,),
}


def examine_scripts(census: Census, measures: Measures) -> Finding:
    """Texts in another writing system than most, with broken characters, or in the rarer way to write Chinese."""
    counts = measures.scripts
    systems = list(WRITING_SYSTEMS)
    letters = _letters(measures)
    main = int(letters.sum(axis=0).argmax())
    other = _systems_of_texts(letters)
    foreign = np.flatnonzero((other >= 0) & (other != main))
    broken = np.flatnonzero(counts[:, Script.BROKEN])
    simplified, traditional = _ways_to_write(counts[:, Script.SIMPLIFIED], counts[:, Script.TRADITIONAL])
    n_rarer = min(int(simplified.sum()), int(traditional.sum()))
    rarer = traditional if traditional.sum() <= simplified.sum() else simplified
    is_mixed = n_rarer > MIXED * len(census)
    odd = np.union1d(foreign, broken)
    total = int(counts.sum(dtype=np.int64))
    shares = {name: int(counts[:, list(each)].sum(dtype=np.int64)) for name, each in PARTS.items()}
    chinese, english = systems[main].split(" ", 1)
    told = [(f"以{chinese}为主", f"mostly {english}")] if len(census) and letters.sum() else []
    if len(foreign):
        share = percent(len(foreign), len(census))
        told.append((f"{len(foreign):,} 条（{share}）主要是别的文字", f"{len(foreign):,} ({share}) mostly in others"))
    if len(broken):
        told.append((f"{len(broken):,} 条含乱码字符", f"{len(broken):,} with broken characters"))
    if n_rarer:
        told.append(
            (
                f"简体 {int(simplified.sum()):,} 条、繁体 {int(traditional.sum()):,} 条",
                f"{int(simplified.sum()):,} simplified and {int(traditional.sum()):,} traditional",
            )
        )
    reasons = {row: f"{systems[other[row]]}" for row in foreign.tolist()}
    reasons |= dict.fromkeys(broken.tolist(), "乱码 broken characters")
    name = "繁体 traditional" if rarer is traditional else "简体 simplified"
    shown = [(row, reasons[row]) for row in odd.tolist()] + [
        (row, name) for row in np.flatnonzero(rarer).tolist()[:EXAMPLES] if is_mixed and row not in reasons
    ]
    return Finding(
        kind=Kind.SCRIPTS,
        severity=_severity(len(odd) / max(len(census), 1), is_mixed=is_mixed),
        count=len(odd) + (n_rarer if is_mixed else 0),
        summary="；".join(chinese for chinese, _ in told) or "没有文字",
        summary_en="; ".join(english for _, english in told) or "no letters",
        figures={
            "characters": shares,
            "foreign": len(foreign),
            "broken": len(broken),
            "simplified": int(simplified.sum()),
            "traditional": int(traditional.sum()),
            "plots": [
                bars(
                    "字符构成",
                    "Characters by kind",
                    [(part, round(100 * count / total, 2)) for part, count in shares.items() if count],
                    unit="%",
                )
            ]
            if total
            else [],
        },
        examples=tuple(Example(census.ids[row], census.labels(row), why=why) for row, why in shown[:EXAMPLES]),
        commands=_commands(census, has_odd=len(odd) > 0, is_mixed=is_mixed),
        reviews=tuple(
            Wanted(census.ids[row], Reason.OUTLIER, VALUE, details={"script": reasons[row]}) for row in odd.tolist()
        ),
    )


def _severity(share: float, *, is_mixed: bool) -> Severity:
    if share >= SERIOUS:
        return Severity.SERIOUS
    return Severity.NOTABLE if share or is_mixed else Severity.FINE


def _letters(measures: Measures) -> FloatArray:
    """(n, systems), how much each writing system has of each text, in characters that say as much as a Chinese one."""
    columns = [
        measures.scripts[:, list(each)].sum(axis=1) / (ALPHABETIC if each[0] in ALPHABETS else 1)
        for each in WRITING_SYSTEMS.values()
    ]
    return np.column_stack(columns).astype(np.float32)


def _systems_of_texts(letters: FloatArray) -> IntArray:
    """(n,), the number of the writing system that most of each text is in, or -1. letters: (n, systems)."""
    total = letters.sum(axis=1)
    found = letters.argmax(axis=1)
    kana = list(WRITING_SYSTEMS).index("假名 kana")
    found[letters[:, kana] > JAPANESE * total] = kana
    return np.where(total >= LETTERS, found, -1)


def _ways_to_write(simplified: CharacterCounts, traditional: CharacterCounts) -> tuple[BoolArray, BoolArray]:
    """(n,) each: which texts are in simplified and which in traditional Chinese, by the characters that tell."""
    return (
        (simplified >= TELLING) & (simplified > traditional),
        (traditional >= TELLING) & (traditional > simplified),
    )


def _commands(census: Census, *, has_odd: bool, is_mixed: bool) -> tuple[str, ...]:
    found = []
    if has_odd:
        found.append(f"wenlei library doctor --library {census.name} --to-review scripts")
    if is_mixed and not census.library.definition.normaliser.simplify:
        found.append(f"wenlei library import FILE --library {census.name}-simplified --simplify")
    return tuple(found)
