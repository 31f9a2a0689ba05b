import gzip
import lzma
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import BadInput
from model.snapshot import write_snapshot
from model.text import Normaliser, sample_id
from model.types import Sample, Split, Task, Taxonomy
from training.pretrain import text_files
from training.pretrain.corpus import LONGEST_DOCUMENT, LONGEST_PASSAGE, Corpus, Layout
from training.pretrain.sentences import last_end, sentences
from training.pretrain.text_files import lines

TEXT = "第一篇。\n它有两段。\n\n\n第二篇只有一段。\n"
DOCUMENTS = [["第一篇。", "它有两段。"], ["第二篇只有一段。"]]
PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def documents(*paths: Path, layout: Layout = Layout.AUTO) -> list[list[str]]:
    return list(Corpus.open(paths, layout=layout).documents())


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_blank_line_ends_a_document_in_plain_and_packed_files(tmp_path: Path, suffix: str, ends: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACK[suffix]("\ufeff".encode() + TEXT.replace("\n", ends).encode()))
    assert documents(path) == DOCUMENTS


def test_files_follow_each_other_and_a_document_ends_with_its_file(tmp_path: Path) -> None:
    first, second = written(tmp_path / "1.txt", TEXT.rstrip()), written(tmp_path / "2.txt", "\n\n" + TEXT)
    corpus = Corpus.open([second, first])
    read = []
    assert list(corpus.documents(read.append)) == DOCUMENTS * 2
    assert sum(read) == corpus.bytes == first.stat().st_size + second.stat().st_size
    assert [source["name"] for source in corpus.to_json()["sources"]] == ["2.txt", "1.txt"]


def test_paragraphs_are_normalised_and_those_of_which_nothing_is_left_fall_away(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "ＡＢＣ <b>粗</b>\n\u200b\n&nbsp;\n\n二。\n")
    corpus = Corpus.open([path])
    assert list(corpus.documents()) == [["ABC 粗"], ["二。"]]
    assert corpus.to_json()["normaliser"] == Normaliser().to_json()


def test_titles_a_line_are_a_document_each(tmp_path: Path) -> None:
    path = written(tmp_path / "titles.txt", "沪指收跌\n球队晋级决赛\n新机发布\n")
    assert documents(path) == [["沪指收跌"], ["球队晋级决赛"], ["新机发布"]]
    assert documents(path, layout=Layout.BLANK_LINES) == [["沪指收跌", "球队晋级决赛", "新机发布"]]


def test_whole_texts_a_line_are_a_document_each(tmp_path: Path) -> None:
    texts = [f"第{number}篇。" * 100 for number in range(3)]
    assert documents(written(tmp_path / "texts.txt", "\n".join(texts))) == [[text] for text in texts]


def test_running_text_without_blank_lines_becomes_passages(tmp_path: Path) -> None:
    lines = [f"这是小说的第{number}段，讲了一件事。" for number in range(3_000)]
    passages = documents(written(tmp_path / "novel.txt", "\n".join(lines)))
    assert [line for passage in passages for line in passage] == lines
    sizes = [sum(map(len, passage)) for passage in passages]
    assert max(sizes) <= LONGEST_PASSAGE
    assert min(sizes[:-1]) > LONGEST_PASSAGE - 100


def test_a_novel_with_a_blank_line_between_all_paragraphs_is_one_text_where_one_says_so(tmp_path: Path) -> None:
    lines = [f"这是小说的第{number}段。" for number in range(1_500)]
    path = written(tmp_path / "novel.txt", "\n\n".join(lines))
    assert len(documents(path)) == 1_500
    passages = documents(path, layout=Layout.RUNNING)
    assert [line for passage in passages for line in passage] == lines
    assert len(passages) == 2


def test_a_document_too_long_for_memory_goes_on_as_another(tmp_path: Path) -> None:
    lines = ["长文" * 10_000 + "。"] * 12
    found = documents(written(tmp_path / "a.txt", "\n".join(lines) + "\n\n短。"))
    assert [line for document in found[:-1] for line in document] == lines
    assert all(sum(map(len, document)) <= LONGEST_DOCUMENT for document in found)
    assert found[-1] == ["短。"]


def test_of_a_snapshot_only_train_is_read_and_a_pair_is_one_document(tmp_path: Path) -> None:
    texts = [
        ("训练文本。", None, Split.TRAIN),
        ("问", "答", Split.TRAIN),
        ("开发", None, Split.DEV),
        ("测试", "题", Split.TEST),
    ]
    samples = [
        Sample(id=sample_id(text, pair), text=text, pair=pair, labels=("甲",), split=split)
        for text, pair, split in texts
    ]
    snapshot = write_snapshot(
        sorted(samples, key=lambda sample: sample.id),
        taxonomy=Taxonomy(Task.SINGLE, ("甲",)),
        normaliser=Normaliser(),
        folder=tmp_path,
    )
    assert sorted(documents(snapshot.path)) == [["训练文本。"], ["问", "答"]]
    (source,) = Corpus.open([snapshot.path]).to_json()["sources"]
    assert (source["kind"], source["sha256"]) == ("snapshot", snapshot.hash)


@pytest.mark.parametrize("content", [b"", b"\n \n\t\n", "\ufeff".encode()])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"empty\.txt of the corpus is empty"):
        Corpus.open([path])


def test_what_is_missing_a_plain_folder_or_named_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", TEXT)
    with pytest.raises(BadInput, match=r"b\.txt of the corpus is not there"):
        Corpus.open([path, tmp_path / "b.txt"])
    with pytest.raises(BadInput, match="is a folder without a snapshot"):
        Corpus.open([tmp_path])
    with pytest.raises(BadInput, match="named twice"):
        Corpus.open([path, tmp_path / "." / "a.txt"])
    with pytest.raises(BadInput, match="--corpus"):
        Corpus.open([])


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("before", ["abc\n", ("好" * 50_000 + "。\n") * 16], ids=["at once", "after chunks"])
def test_another_encoding_is_named_with_line_byte_and_the_command_that_converts(
    tmp_path: Path, suffix: str, before: str
) -> None:
    path = tmp_path / f"gb.txt{suffix}"
    good = before.encode() + b"ok "
    path.write_bytes(PACK[suffix](good + "今天天气很好，我们去公园散步。他们也想去看看花。".encode("gb18030")))
    with pytest.raises(BadInput) as error:
        list(lines(path))
    assert f"line {before.count(chr(10)) + 1}, byte {len(good) + 1:,} is not UTF-8; it looks like GB18030" in str(
        error.value
    )
    assert "iconv -f GB18030 -t UTF-8" in str(error.value)
    assert {"": f"{path} > gb.txt.utf8", ".xz": f"xz -dc {path} | ", ".gz": f"gzip -dc {path} | "}[suffix] in str(
        error.value
    )


def test_bytes_of_no_known_encoding_are_named_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("一\n二".encode() + b"\xff\xff\xff")
    with pytest.raises(BadInput, match=r"line 2, byte 8 is not UTF-8; if it is text in another ENCODING"):
        Corpus.open([path])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TEXT.encode("utf-16"), "is UTF-16; convert it: iconv"),
        (b"text\n\x00\x01", "line 2 holds a zero byte"),
        (b"PK\x03\x04zip", "packed with zip"),
        (b"BZh91AY", "packed with bzip2"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        Corpus.open([path])


@pytest.mark.parametrize("suffix", [".xz", ".gz"])
@pytest.mark.parametrize("damage", ["cut off", "changed"])
def test_a_damaged_packed_file_is_refused(tmp_path: Path, suffix: str, damage: str) -> None:
    packed = PACK[suffix]("".join(f"第{number}行，{number * 7919 % 1013}。\n" for number in range(5_000)).encode())
    path = tmp_path / f"a.txt{suffix}"
    middle = len(packed) // 2
    path.write_bytes(packed[:-9] if damage == "cut off" else packed[:middle] + bytes(20) + packed[middle + 20 :])
    with pytest.raises(BadInput, match="is damaged or was cut off"):
        list(lines(path))


def test_a_very_long_line_is_read_in_pieces_at_ends_of_sentences_in_flat_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.txt"
    sentence = "他说：“没有换行。”"
    with path.open("w", encoding="utf-8") as file:
        file.write("短行\n")
        file.writelines([sentence * 10_000] * 20)
        file.write("\n末行")
    tracemalloc.start()
    found = lines(path)
    assert next(found) == "短行"
    pieces = total = 0
    for piece in islice(found, 19):
        assert len(piece) <= 2 * text_files.LONGEST_LINE
        assert piece.endswith(sentence)
        pieces, total = pieces + 1, total + len(piece)
    *rest, last = found
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert last == "末行"
    assert total + sum(map(len, rest)) == 200_000 * len(sentence)
    assert peak < 2_500_000  # the line has 5 MB
    tracemalloc.start()
    corpus = Corpus.open([path])
    assert sum(map(len, (text for document in corpus.documents() for text in document))) > 200_000 * len(sentence)
    assert tracemalloc.get_traced_memory()[1] < 3_500_000
    tracemalloc.stop()
    assert capsys.readouterr().err.count("line 2 is longer than 100,000 characters") == 1


def test_a_line_without_end_and_without_sentences_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "标题\n" + "字" * 300_000)
    read: list[float] = []
    with pytest.raises(BadInput, match="line 2 has 100,000 characters and more without the end of a sentence"):
        list(lines(path, read.append))
    assert sum(read) < path.stat().st_size / 2


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("他来了。她走了！真的？是；对……好", ["他来了。", "她走了！", "真的？", "是；", "对……", "好"]),
        ("他说：“走吧。”她说：“好！！”（完。）", ["他说：“走吧。”", "她说：“好！！”", "（完。）"]),
        ("标题没有句号", ["标题没有句号"]),
        ("See a.b?id=1 now. Then 3.5 go! 好吗?好", ["See a.b?id=1 now.", "Then 3.5 go!", "好吗?", "好"]),
        ("。。。", ["。。。"]),
        ("", []),
    ],
)
def test_sentences_end_where_chinese_ends_them_and_keep_closing_quotes(paragraph: str, expected: list[str]) -> None:
    assert sentences(paragraph) == expected


@settings(deadline=None)
@given(st.text('字a 。！”".?;1A', max_size=60))
def test_no_character_is_lost_between_sentences(paragraph: str) -> None:
    found = sentences(paragraph)
    assert "".join("".join(found).split()) == "".join(paragraph.split())
    assert all(sentence == sentence.strip() != "" for sentence in found)


@settings(deadline=None)
@given(st.text("字a 。！”", min_size=1, max_size=60))
def test_the_last_end_leaves_something_that_may_belong_to_the_next_piece(text: str) -> None:
    end = last_end(text)
    assert 0 <= end < len(text)
    assert sentences(text[:end]) + sentences(text[end:]) == sentences(text)
