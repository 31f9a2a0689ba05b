"""Formats, delimiters and quoting, told from the first lines."""

import pytest

from app.library.formats import Format, detect_format, quotes_like_csv, sniff_delimiter


@pytest.mark.parametrize(
    ("suffix", "lines", "expected"),
    [
        (".csv", ["text,label\n"], Format.CSV),
        (".json", ['{"text": "好"}\n'], Format.JSONL),
        (".txt", ['{"text": "好"}\n'], Format.JSONL),
        (".txt", ["股市回暖\t2\n", "球队夺冠\t7\n"], Format.TSV),
        (".txt", ["第一句。\n", "第二句。\n"], Format.TXT),
        (".txt", ["{未完的句子\n"], Format.TXT),
        ("", ["股市回暖\t2\n"], Format.TSV),
        (".json", ["[\n", '{"text": "好"},\n'], Format.JSON),
        (".txt", ['[{"text": "好"}, {"text":'], Format.JSON),
        (".json", ["{\n", '"data": [\n'], Format.JSON),
        (".json", ['{"data": {"rows": [{"text": "好"}]}}\n'], Format.JSON),
        (".jsonl", ['{"text": "好", "spans": [{"start": 0}]}\n'], Format.JSONL),
        (".json", ['{"text": "好", "labels": ["a"]}\n'], Format.JSONL),
        (".json", ['{"text": 坏了\n', '{"text": "好"}\n'], Format.JSONL),
        (".txt", ["[微笑]今天很好\n", "[怒]排队两小时\n"], Format.TXT),
        (".txt", ["__label__好评 房间很干净\n", "__label__差评 太吵\n"], Format.FASTTEXT),
        (".csv", ["__label__,text\n"], Format.CSV),
    ],
)
def test_the_format_follows_from_content_and_name(suffix: str, lines: list[str], expected: Format) -> None:
    assert detect_format(suffix, lines) is expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["text,label\n", "好吃,好评\n"], ","),
        (["text;label\n", "好吃, 便宜;好评\n", "贵;差评\n"], ";"),
        (["text\tlabel\n", "好吃, 便宜\t好评\n", "贵\t差评\n"], "\t"),
        (["text\n", "好吃\n"], ","),
        (["text;label\n", "好吃;好评\n", f"{'长' * 140_000};差评\n"], ";"),
        (["text;label\n", "好吃;好评\n", '"没有闭合;差评\n', *[f"{'长' * 70_000};差评\n"] * 3], ";"),
    ],
)
def test_the_delimiter_is_the_one_that_gives_regular_rows(lines: list[str], expected: str) -> None:
    assert sniff_delimiter(lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['"双城记"上映\t7\n', "别的\t2\n"], False),
        (['"未闭合\t7\n', '"整个都在引号里"\t2\n'], False),
        (['"他说""好"""\t7\n', "别的\t2\n"], True),
        (['"好"\t"7"\n', '"坏"\t"2"\n'], True),
    ],
)
def test_quotes_in_tab_separated_files_are_characters_unless_they_quote_like_csv(
    lines: list[str], expected: bool
) -> None:
    assert quotes_like_csv(lines) is expected
