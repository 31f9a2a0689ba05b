"""Agreement between persons: each one's newest word, on samples that two or more have labelled."""

from collections.abc import Mapping

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from workshop import Workshop

from app.library.agreement import Agreement, PairAgreement, measure_agreement
from app.library.labelling import label_sample, undo_event
from model.errors import BadInput


def say(workshop: Workshop, text: str, labels: str, by: str) -> int:
    return label_sample(
        workshop.engine, library="default", sample=text, is_text=True, labels=labels.split("+"), by=by
    ).event


def measured(workshop: Workshop, words: Mapping[str, Mapping[str, str]]) -> Agreement:
    """The agreement after each person has said, per text, what `words` holds."""
    for by, labels in words.items():
        for text, label in labels.items():
            say(workshop, text, label, by)
    return measure_agreement(workshop.engine, library="default")


def test_two_persons_and_one_who_labelled_little(workshop: Workshop) -> None:
    workshop.load(
        workshop.write("a.csv", "text,label\n" + "".join(f"第{row}天,{'好中差'[row % 3]}\n" for row in range(12)))
    )
    one, other = "好好中差中好差中好好差中", "好中中差中好好中好差差中"
    words = {
        "标注员甲": {f"第{row}天": label for row, label in enumerate(one)},
        "标注员乙": {f"第{row}天": label for row, label in enumerate(other)},
        "标注员丙": {"第0天": "好"},
    }
    found = measured(workshop, words)
    pairs = {pair.persons: pair for pair in found.pairs}
    kappa = cohen_kappa_score(list(one), list(other))
    assert pairs["标注员乙", "标注员甲"] == PairAgreement(("标注员乙", "标注员甲"), 12, 0.75, pytest.approx(kappa))
    assert pairs["标注员丙", "标注员甲"] == PairAgreement(("标注员丙", "标注员甲"), 1, 1.0, None)
    assert (found.samples, found.persons) == (12, {"标注员乙": 12, "标注员甲": 12, "标注员丙": 1})
    assert found.observed == pytest.approx(0.75)
    # 25 words: 10 x 好, 9 x 中, 6 x 差; on 3 samples one pair disagrees, counted both ways
    assert found.alpha == pytest.approx(1 - 24 * 6 / (25**2 - 10**2 - 9**2 - 6**2))


def test_only_newest_words_that_were_not_undone_and_are_shared_count(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,差评\n隔音差,中评\n"))
    say(workshop, "房间大", "差评", "标注员甲")
    say(workshop, "早餐凉", "差评", "标注员甲")
    say(workshop, "隔音差", "差评", "标注员甲")
    withdrawn = say(workshop, "早餐凉", "好评", "标注员乙")
    words = {"标注员甲": {"房间大": "好评"}, "标注员乙": {"房间大": "好评", "隔音差": "差评"}}
    found = measured(workshop, words)
    assert (found.samples, found.observed) == (3, pytest.approx(2 / 3))
    undo_event(workshop.engine, withdrawn, by="标注员乙")
    again = measure_agreement(workshop.engine, library="default")
    assert (again.samples, again.observed, again.alpha) == (2, 1.0, 1.0)


def test_sets_of_labels_that_overlap_agree_in_part(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n便宜,价格;位置\n远,位置;服务\n吵,噪音\n"), label_sep=";")
    words = {
        "标注员甲": {"便宜": "价格", "远": "位置", "吵": "噪音"},
        "标注员乙": {"便宜": "价格+服务", "远": "位置", "吵": "噪音"},
    }
    overlapping = measured(workshop, words)
    apart = measured(workshop, {"标注员乙": {"便宜": "服务"}})
    assert overlapping.observed == apart.observed == pytest.approx(2 / 3)
    assert overlapping.alpha is not None
    assert apart.alpha is not None
    assert 1 > overlapping.alpha > apart.alpha > 0
    assert not np.isnan(overlapping.alpha)


def test_without_two_persons_there_is_nothing_to_measure(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n"))
    say(workshop, "房间大", "好评", "标注员甲")
    with pytest.raises(BadInput, match="no sample that two persons labelled"):
        measure_agreement(workshop.engine, library="default")
