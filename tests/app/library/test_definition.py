"""Definitions: what a library is follows from its first import, and later ones keep to it."""

import pytest
from workshop import Workshop

from model.errors import BadTaxonomy
from model.types import Task

REVIEWS = "text,label\n房间很干净,好评\n早餐太少了,差评\n房间很干净,好评\n"


def test_a_library_keeps_its_task_and_separators(workshop: Workshop) -> None:
    single = workshop.write("single.csv", REVIEWS)
    multi = workshop.write("multi.csv", "text,label\n涨价了,财经|民生\n")
    paths = workshop.write("paths.csv", "text,label\n裁员了,组织-裁员\n")
    workshop.load(single, library="single")
    workshop.load(multi, library="multi", label_sep="|")
    workshop.load(paths, library="paths", level_sep="-")
    for library, options, message in (
        ("single", {"task": Task.MULTI}, "holds task single, not multi"),
        ("single", {"label_sep": "|"}, "one label a text"),
        ("paths", {"level_sep": "/"}, "levels parted by '-'"),
        ("paths", {"label_sep": "|"}, "one label a text"),
        ("paths", {"label_sep": "-"}, "both '-'"),
        ("multi", {"level_sep": "-"}, "no levels"),
    ):
        with pytest.raises(BadTaxonomy, match=message):
            workshop.load(single, library=library, **options)
    more = workshop.write("more.csv", "text,label\n油价降了,民生|汽车\n")
    workshop.load(more, library="multi")
    assert workshop.freeze("multi").snapshot.taxonomy.labels == ("民生", "汽车", "财经")
    taxonomy = workshop.freeze("paths").snapshot.taxonomy
    assert (taxonomy.task, taxonomy.level_sep, taxonomy.multiple) == (Task.HIERARCHICAL, "-", False)


def test_the_separator_of_one_import_does_not_become_the_librarys(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n涨价了,财经|民生\n"), label_sep="|")
    workshop.load(workshop.write("b.csv", "text,label\n油价降了,民生;汽车\n"), label_sep=";")
    workshop.load(workshop.write("c.csv", "text,label\n球队上市,体育|财经\n"))
    assert workshop.freeze().snapshot.taxonomy.labels == ("体育", "民生", "汽车", "财经")


def test_a_library_simplifies_its_texts_if_it_was_made_so(workshop: Workshop) -> None:
    path = workshop.write("a.csv", "text,label\n這家店很好,好評\n")
    workshop.load(path, library="simple", simplify=True)
    assert workshop.load(workshop.write("b.csv", "text,label\n这家店很好,好評\n"), library="simple").added == 0
    workshop.load(path)
    for library, simplify, message in (("simple", False, "simplifies its texts"), ("default", True, "keeps")):
        with pytest.raises(BadTaxonomy, match=message):
            workshop.load(path, library=library, simplify=simplify)
    assert [*workshop.samples("simple")] == ["这家店很好"]
    assert [*workshop.samples("default")] == ["這家店很好"]
    assert workshop.freeze("simple").snapshot.normaliser.simplify


def test_declared_classes_keep_their_order_and_can_be_called_by_number(workshop: Workshop) -> None:
    numbers = workshop.write("a.csv", "text,label\n好,1\n坏,0\n怪,2\n还行,好评\n")
    imported = workshop.load(numbers, names=("差评", "好评"))
    assert (imported.added, imported.rejected) == (3, 1)
    names = workshop.write("b.csv", "text,label\n不错,好评\n一般,中评\n")
    assert workshop.load(names).rejected == 1
    assert workshop.freeze().snapshot.taxonomy.labels == ("差评", "好评")
    assert {text: sample.labels for text, sample in workshop.samples().items()} == {
        "好": ("好评",),
        "坏": ("差评",),
        "还行": ("好评",),
        "不错": ("好评",),
    }
    with pytest.raises(BadTaxonomy, match="differs from its declared list"):
        workshop.load(names, names=("好评", "差评"))


def test_a_grown_taxonomy_can_be_declared_later_if_nothing_is_left_out(workshop: Workshop) -> None:
    path = workshop.write("a.csv", REVIEWS)
    workshop.load(path)
    with pytest.raises(BadTaxonomy, match="lacks its labels 差评"):
        workshop.load(path, names=("好评",))
    workshop.load(path, names=("差评", "中评", "好评"))
    assert workshop.freeze().snapshot.taxonomy.labels == ("差评", "中评", "好评")


def test_a_column_of_texts_is_not_taken_for_labels_and_nothing_more_is_read(workshop: Workshop) -> None:
    rows = "".join(f"第{row}条,说法{row}\n" for row in range(10_001))
    never_read = workshop.write("b.csv", "it has none of the columns\n1\n")
    with pytest.raises(BadTaxonomy, match="is --label the right column"):
        workshop.load(workshop.write("a.csv", "text,label\n" + rows), never_read)
