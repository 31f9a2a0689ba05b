"""How a file that comes in a request is to be read, as the options of `wenlei library import` say it.

Only what the request itself brings is read: no path of the server's disk and no data set of a hub can be named.
"""

import codecs
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from app.api.asked import Asked
from app.library.definition import ImportOptions, Proposer
from app.library.formats import Format
from app.library.label_names import check_label_names
from app.library.rows import Columns
from app.library.tables import Reading
from model.types import Task

MAX_FILENAME = 200  # bytes of UTF-8; file systems allow 255
# Of texts; Python knows others that take hours to read what was made to do harm.
ENCODINGS = frozenset(
    {
        *("ascii", "big5", "big5hkscs", "cp1252", "cp950", "gb18030", "gb2312", "gbk", "hz", "iso8859-1"),
        *("utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le", "utf-8", "utf-8-sig"),
    }
)


def _plain(filename: str) -> str:
    """A name and nothing else, so that it leads nowhere."""
    if not filename or PurePosixPath(filename).name != filename or "\\" in filename or filename.startswith("."):
        raise ValueError("give the file's own name, without folders and not beginning with a dot")
    if not filename.isprintable() or len(filename.encode()) > MAX_FILENAME:
        raise ValueError(f"give a printable name of at most {MAX_FILENAME} bytes")
    return filename


def _character_encoding(name: str) -> str:
    """One that files of texts are in."""
    try:
        known = name == "auto" or codecs.lookup(name).name in ENCODINGS
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ValueError(f"take auto or one of {', '.join(sorted(ENCODINGS))}, or save the file as UTF-8")
    return name


Words = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=200)]
Separator = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=16)]
# All but folders and data sets of the hub, neither of which a request can bring.
FileFormat = Literal[
    "auto", "csv", "tsv", "jsonl", "json", "xlsx", "parquet", "txt", "fasttext", "label-studio", "doccano"
]


class ImportQuery(Asked):
    """How the file is to be read, as the options of `wenlei library import`."""

    filename: Annotated[str, AfterValidator(_plain)] = Field(
        description="文件名，记入来源 | the file's name, kept as provenance", examples=["reviews.csv"]
    )
    text: Words | None = Field(default=None, description="文本列 | column of the text: name or index")
    label: Words | None = Field(default=None, description="标签列 | column of the label")
    pair: Words | None = Field(default=None, description="第二文本列 | column of the second text")
    proposed_by: Words | None = Field(
        default=None, description="建议者 rule:名称、model:名称 | the labels are proposals of a rule or a model"
    )
    confidence: Words | None = Field(default=None, description="建议的置信度列 | column of how sure they are, 0 to 1")
    split: Words | None = Field(
        default=None, description="train、dev、test，或列 | the split of all rows, or its column"
    )
    task: Task | None = Field(default=None, description="任务类型 | task of a new library")
    label_sep: Separator | None = Field(default=None, description="标签分隔符 | parts the labels of a text")
    level_sep: Separator | None = Field(default=None, description="层级分隔符 | parts the levels of a label")
    classes: list[Words] = Field(
        default=[],
        alias="class",
        max_length=1000,
        description="类别，可重复，按序；更多请用 /v1/taxonomy | a class, in its order, again for each; for more see "
        "/v1/taxonomy",
    )
    format: FileFormat = Field(default="auto", description="文件格式 | format of the file")
    sheet: Words | None = Field(default=None, description="工作表 | sheet of a workbook")
    encoding: Annotated[str, AfterValidator(_character_encoding)] = Field(
        default="auto", description="字符编码 | character encoding"
    )
    no_header: bool = Field(default=False, description="首行不是列名 | the first row names no columns")
    simplify: bool | None = Field(default=None, description="繁体转简体 | of a new library: simplify characters")
    dry_run: bool = Field(default=False, description="只看不写 | show what would be stored, write nothing")

    def options(self, library: str) -> ImportOptions:
        """What it asks of the library."""
        return ImportOptions(
            library=library,
            task=self.task,
            label_sep=self.label_sep,
            level_sep=self.level_sep,
            names=check_label_names(self.classes, place="class") if self.classes else None,
            simplify=self.simplify,
            proposer=Proposer.read(self.proposed_by) if self.proposed_by is not None else None,
        )

    @property
    def columns(self) -> Columns:
        """Where what stands."""
        return Columns(text=self.text, label=self.label, pair=self.pair, split=self.split, confidence=self.confidence)

    @property
    def reading(self) -> Reading:
        """How the file is read."""
        return Reading(format=Format(self.format), header=not self.no_header, encoding=self.encoding, sheet=self.sheet)
