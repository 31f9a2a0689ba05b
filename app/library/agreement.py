"""How far the persons who labelled the same samples agree, pair by pair and all together."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import sqlalchemy as sa

from app.library.labels import candidates
from app.store.database import connect, reading
from app.store.events import events_of_shared
from app.store.libraries import get_library
from model.errors import BadInput
from model.metrics import cohen_kappa, gold_matrix, krippendorff_alpha


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two persons, the samples that both labelled, the share on which they agree, and Cohen's kappa, if defined."""

    persons: tuple[str, str]
    samples: int
    observed: float
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """samples: labelled by two persons or more. persons: → how many of those each labelled, by name.

    observed: the share of pairs of persons who agree, averaged over the samples. alpha: Krippendorff's, if defined.
    pairs: those who have samples in common, by name.
    """

    samples: int
    persons: dict[str, int]
    observed: float
    alpha: float | None
    pairs: tuple[PairAgreement, ...]


def measure_agreement(engine: sa.Engine, *, library: str) -> Agreement:
    """The agreement of each person's newest word on the samples that two persons or more have labelled.

    Sets of labels agree when they are the same; alpha also knows how much they overlap (MASI). That no class fits is a
    word like others; one of whose classes nothing is left today does not count.

    Raises:
        UnknownLibrary: there is no such library. BadInput: no sample was labelled by two persons.
    """
    codes: dict[tuple[str, ...], int] = {}
    units: list[list[int]] = []
    persons = Counter[str]()
    common: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        for sample in events_of_shared(connection, source.id):
            undecided = {recorded.event.id for recorded in sample.recorded if recorded.undecided}
            words = sorted(
                (word.actor, codes.setdefault(word.labels, len(codes)))
                for word in candidates(sample.events)
                if word.actor_kind == "person" and word.id not in undecided
            )
            if len(words) < 2:  # the others' words were undone, or their classes are gone
                continue
            units.append([code for _, code in words])
            persons.update(person for person, _ in words)
            for (one, first), (other, second) in combinations(words, 2):
                common[one, other].append((first, second))
    if not units:
        raise BadInput(
            f"library {library!r} has no sample that two persons labelled; "
            f"let a second one label some with wenlei library label SAMPLE LABEL --by NAME"
        )
    return Agreement(
        samples=len(units),
        persons=dict(sorted(persons.items())),
        observed=float(np.mean([_agreeing_share(unit) for unit in units])),
        alpha=krippendorff_alpha(units, gold_matrix(list(codes), source.definition.taxonomy)),
        pairs=tuple(_pair(names, codes_given) for names, codes_given in sorted(common.items())),
    )


def _agreeing_share(unit: list[int]) -> float:
    pairs = list(combinations(unit, 2))
    return sum(first == second for first, second in pairs) / len(pairs)


def _pair(persons: tuple[str, str], given: list[tuple[int, int]]) -> PairAgreement:
    one, other = np.array(given, dtype=np.int64).T
    return PairAgreement(
        persons=persons, samples=len(given), observed=float((one == other).mean()), kappa=cohen_kappa(one, other)
    )
