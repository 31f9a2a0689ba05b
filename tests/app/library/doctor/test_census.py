"""What the doctor knows of a library before it judges."""

import numpy as np
from patients import SENTENCES, census_of, rows
from workshop import Workshop

from app.library.doctor.census import UNLABELLED
from app.library.doctor.measures import Script, scripts_of
from app.library.labelling import label_sample, undo_event
from app.library.revisions import remove
from app.library.splits import SPLITS, UNPROTECTED
from app.library.taxonomies import change_taxonomy
from model.types import Split, Text


def row_of(census, workshop, text):
    return census.ids.index(next(each.id for each in workshop.samples().values() if each.text == text))


def test_a_census_holds_every_sample_with_its_labels_split_and_whoever_gave_them(workshop: Workshop) -> None:
    split = workshop.write("a.csv", rows(*((text, "好评", "dev") for text in SENTENCES[:3]), header="text,label,split"))
    workshop.load(split, split="split")
    workshop.load(workshop.write("b.csv", rows(*((text, "差评") for text in SENTENCES[3:6]))))
    workshop.load(workshop.write("c.csv", rows((SENTENCES[0], "差评"))))
    workshop.load(workshop.write("d.csv", rows(*((text,) for text in SENTENCES[6:]), header="text")), label=None)
    label_sample(workshop.engine, library="default", sample=SENTENCES[4], is_text=True, labels=["好评"], by="标注员甲")
    heard = []
    census, measures = census_of(workshop, on_samples=heard.append)
    assert census.ids == sorted(census.ids)
    assert (len(census), sum(heard)) == (10, 20)
    assert np.count_nonzero(census.codes == UNLABELLED) == 4
    assert np.count_nonzero(census.imported_splits == SPLITS.index(Split.DEV)) == 3
    assert np.count_nonzero(census.imported_splits == UNPROTECTED) == 7
    said = row_of(census, workshop, SENTENCES[4])
    assert np.flatnonzero(census.by_person).tolist() == [said]
    assert census.labels(said) == ("好评",)
    assert np.flatnonzero(census.conflict).tolist() == [row_of(census, workshop, SENTENCES[0])]
    assert sorted(measures.lengths.tolist()) == sorted(map(len, SENTENCES))
    assert measures.tokens is None


def test_a_persons_word_stands_though_its_class_is_gone_and_not_once_it_is_undone(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", rows(*((text, "好评") for text in SENTENCES[:2]), (SENTENCES[2], "旧类"))))
    words = [
        label_sample(workshop.engine, library="default", sample=text, is_text=True, labels=["旧类"], by="标注员甲")
        for text in SENTENCES[:2]
    ]
    change_taxonomy(workshop.engine, "default", remove("旧类"), by="标注员甲")
    census, _ = census_of(workshop)
    assert np.count_nonzero(census.codes == UNLABELLED) == 3
    assert np.count_nonzero(census.by_person) == 2
    undo_event(workshop.engine, event=words[0].event, by="标注员甲")
    census, _ = census_of(workshop)
    assert np.count_nonzero(census.by_person) == 1


def test_tokens_are_counted_by_whoever_can(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", rows(*((text, "好评") for text in SENTENCES))))

    def count(texts: list[Text]) -> list[int]:
        return [2 * len(text.text) for text in texts]

    _, measures = census_of(workshop, count_tokens=count)
    assert measures.tokens.tolist() == (2 * measures.lengths).tolist()


def test_a_surprising_text_is_one_unlike_the_rest_however_often_it_is_copied(workshop: Workshop) -> None:
    ordinary = [f"{one}，{other}" for one in SENTENCES for other in SENTENCES]
    odd = "锟斤拷烫烫烫屯屯屯葺葺莨莪"
    workshop.load(workshop.write("a.csv", rows(*((text, "好评") for text in ordinary), (odd, "好评"))))
    alone = census_of(workshop).measures.surprisal.max()
    copies = [(f"{odd}{mark}", "好评") for mark in ("。", "！", "？", "~", "、", "……", "——")]
    workshop.load(workshop.write("b.csv", rows(*copies)))
    census, measures = census_of(workshop)
    assert len(census) == 108
    most = np.argsort(-measures.surprisal)[:8]
    assert set(census.near.groups[most].tolist()) == {census.near.groups[most[0]]}
    assert measures.surprisal[most].min() > 0.9 * alone


def test_characters_are_told_apart_by_script() -> None:
    (counts,) = scripts_of(["门裡后A１か한ж😀。\ufffd๗"])
    found = {script: int(counts[script]) for script in Script if counts[script]}
    assert found == {
        Script.HAN: 1,
        Script.SIMPLIFIED: 1,
        Script.TRADITIONAL: 1,
        Script.LATIN: 1,
        Script.DIGITS: 1,
        Script.KANA: 1,
        Script.HANGUL: 1,
        Script.CYRILLIC: 1,
        Script.EMOJI: 1,
        Script.MARKS: 1,
        Script.BROKEN: 1,
        Script.OTHER: 1,
    }
