"""Read a declared taxonomy from a file: a class a line, or a table of classes with what is known of them."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from app.library.cells import cell_text, label_name
from app.library.definition import check_library_name
from app.library.formats import Format
from app.library.readers import Broken
from app.library.sources import Source
from app.library.tables import Reading, Table, open_tables
from app.store.libraries import LibraryDefinition
from app.store.taxonomies import ClassDetails
from model.errors import BadInput, BadTaxonomy
from model.text import Normaliser
from model.types import Choice, Task, Taxonomy, preview

LEVEL_SEP = "/"
MAX_LEVELS = 50  # more is a mistake, and Python can't follow a thousand parents
COLUMNS = {
    "name": ("name", "label", "class", "名称", "标签", "类别", "类名"),
    "parent": ("parent", "上级", "父类", "上级类别"),
    "code": ("code", "编码", "代码"),
    "description": ("description", "definition", "说明", "定义", "描述"),
    "aliases": ("aliases", "alias", "别名", "同义词"),
    "reviewers": ("reviewers", "复核人数"),
}
_ALIAS_SEP = re.compile(r"[|;；、]")


class DeclaredClass(NamedTuple):
    """A class as a file declares it. `name`: a whole path where there is no `parent`."""

    name: str
    parent: str
    details: ClassDetails
    line: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a file and its options declare. task, level_sep, choices: None leaves them to the library or the file."""

    file: str
    classes: tuple[DeclaredClass, ...]
    task: Task | None = None
    level_sep: str | None = None
    choices: tuple[Choice, ...] | None = None

    def definition(self, library: str, known: LibraryDefinition | None) -> LibraryDefinition:
        """The library as it is declared; whether it may become that is for `app.library.revisions.declare` to say.

        Raises:
            BadTaxonomy: classes stand twice or in a circle, or the options contradict each other.
        BadInput: the library's name can't be one.
        """
        check_library_name(library)
        old = known.taxonomy if known else None
        has_parents = any(declared.parent for declared in self.classes)
        task = self.task or (old.task if old else None)
        if task is None:
            task = Task.HIERARCHICAL if has_parents or self.level_sep or self.choices else Task.SINGLE
        if task is not Task.HIERARCHICAL and (has_parents or self.level_sep or self.choices):
            raise BadTaxonomy(f"{self.file}: task {task} has no levels, so no parents, --level-sep or --choices either")
        if self.level_sep == "":
            raise BadTaxonomy("--level-sep is empty; give the characters that part the levels")
        separator = self.level_sep or (old.level_sep if old else None)
        if task is Task.HIERARCHICAL:
            separator = separator or LEVEL_SEP
        paths = _paths(self, separator) if has_parents else _listed(self)
        branches = {_branch(path, declared, separator) for path, declared in paths.items()} if has_parents else set()
        choices = self.choices if self.choices is not None else (old.choices if old else ())
        taxonomy = Taxonomy(
            task=task,
            labels=tuple(path for path in paths if path not in branches),
            level_sep=separator,
            multiple=task is Task.MULTI
            or Choice.MULTI in choices
            or (not choices and old is not None and old.multiple),
            choices=choices,
        )
        new = known or LibraryDefinition(
            name=library, taxonomy=taxonomy, declared=True, label_sep=None, normaliser=Normaliser()
        )
        classes = {path: declared.details for path, declared in paths.items()}
        return replace(new, taxonomy=taxonomy, declared=True, classes=classes)


def read_declaration(
    path: Path, *, task: Task | None = None, level_sep: str | None = None, choices: Sequence[Choice] | None = None
) -> Declaration:
    """Read the classes that `path` declares: of its only column, or of columns that are called as in `COLUMNS`.

    Raises:
        BadInput: the file can't be read, has no classes, or a class has no name or stands twice.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder; declare the classes in a file")
    with open_tables(Source(path), Reading()) as tables:
        if len(tables) > 1:
            raise BadInput(f"{path} has {len(tables)} tables; declare classes in one")
        classes = _classes(tables[0])
    if not classes:
        raise BadInput(f"{path} declares no class; write one a line")
    return Declaration(str(path), tuple(classes), task, level_sep, None if choices is None else tuple(choices))


def _classes(table: Table) -> list[DeclaredClass]:
    keys = _keys(table)
    first = (table.columns or ("",))[0] if table.format is not Format.TXT else ""
    # a list of names without a header
    classes = (
        [DeclaredClass(label_name(first), "", ClassDetails(), 1)]
        if len(keys) == 1 and not _role(first) and first
        else []
    )
    for row in table.rows:
        if isinstance(row, Broken):
            raise BadInput(f"{table.name}, line {row.line}: {row.reason}")
        cells = {role: _cell(row.cells, key) for role, key in keys.items()}
        if not any(cells.values()):
            continue
        if lists := [role for role, value in cells.items() if isinstance(value, list) and role != "aliases"]:
            raise BadInput(f"{table.name}, line {row.line}: the {lists[0]} is a list; give one text")
        name = label_name(str(cells["name"]))
        if table.format is Format.TXT and row.line == 1 and _role(name) == "name":
            continue  # a header, which a list of names needs not have
        if not name:
            raise BadInput(f"{table.name}, line {row.line}: the class has no name")
        place = f"{table.name}, line {row.line}"
        classes.append(DeclaredClass(name, label_name(str(cells.get("parent", ""))), _details(cells, place), row.line))
    return classes


def _keys(table: Table) -> dict[str, int | str]:
    if table.columns is None or (len(table.columns) == 1 and not _role(table.columns[0]) and not table.by_name):
        return {"name": table.key(table.columns[0] if table.columns else "0")}
    keys = {role: table.key(column) for column in table.columns if (role := _role(column))}
    if "name" not in keys:
        raise BadInput(f"{table.name} has no column of names ({preview(table.columns)}); head it 名称 or name")
    return keys


def _role(column: str) -> str | None:
    return next((role for role, names in COLUMNS.items() if column.strip().lower() in names), None)


def _cell(cells: Any, key: int | str) -> Any:
    if isinstance(cells, Mapping):
        value = cells.get(key)
    else:
        value = cells[key] if isinstance(key, int) and key < len(cells) else None
    return value if isinstance(value, list) else cell_text(value).strip()


def _details(cells: Mapping[str, Any], place: str) -> ClassDetails:
    aliases = cells.get("aliases", "")
    names = [cell_text(alias) for alias in aliases] if isinstance(aliases, list) else _ALIAS_SEP.split(aliases)
    return ClassDetails(
        code=label_name(str(cells.get("code", ""))) or None,
        description=str(cells.get("description", "")) or None,
        aliases=tuple(dict.fromkeys(name for alias in names if (name := label_name(alias)))),
        reviewers=_reviewers(cells.get("reviewers") or "1", place),
    )


def _reviewers(cell: str, place: str) -> int:
    number = unicodedata.normalize("NFKC", cell)
    if number not in ("1", "2"):
        raise BadInput(f"{place}: {cell!r} reviewers; a class is reviewed by 1 person, or by 2 who have to agree")
    return int(number)


def _listed(declaration: Declaration) -> dict[str, DeclaredClass]:
    paths: dict[str, DeclaredClass] = {}
    for declared in declaration.classes:
        _add(paths, declared.name, declared, declaration)
    return paths


def _add(paths: dict[str, DeclaredClass], path: str, declared: DeclaredClass, declaration: Declaration) -> None:
    if path in paths:
        raise BadTaxonomy(f"{declaration.file}, line {declared.line}: the class {path!r} stands twice")
    paths[path] = declared


def _branch(path: str, declared: DeclaredClass, separator: str | None) -> str:
    """The path of the parent, empty at the top."""
    return path[: -len(declared.name)].removesuffix(separator or "")


def _paths(declaration: Declaration, separator: str | None) -> dict[str, DeclaredClass]:
    """Every class under its whole path, found by following its parents, which are named by name or code.

    Raises:
        BadTaxonomy: a parent is not declared or could be several, or following them leads in a circle.
    """
    by_name: dict[str, list[DeclaredClass]] = {}
    for declared in declaration.classes:
        for name in filter(None, (declared.name, declared.details.code)):
            by_name.setdefault(name, []).append(declared)

    def path(declared: DeclaredClass, below: tuple[str, ...]) -> tuple[str, ...]:
        place = f"{declaration.file}, line {declared.line}"
        if separator and separator in declared.name:
            raise BadTaxonomy(
                f"{place}: the name {declared.name!r} holds {separator!r}, which parts the levels; "
                "give another --level-sep"
            )
        if declared.name in below:
            circle = " → ".join((*below[below.index(declared.name) :], declared.name))
            raise BadTaxonomy(f"{place}: the classes stand in a circle: {circle}")
        if len(below) >= MAX_LEVELS:
            raise BadTaxonomy(
                f"{place}: more than {MAX_LEVELS} levels below {declared.name!r}; is it the right column?"
            )
        if not declared.parent:
            return (declared.name,)
        parents = by_name.get(declared.parent, [])
        if len(parents) != 1:
            what = "is not declared" if not parents else f"could be any of {len(parents)} classes; name it by its code"
            raise BadTaxonomy(f"{place}: the parent {declared.parent!r} of {declared.name!r} {what}")
        return (*path(parents[0], (*below, declared.name)), declared.name)

    paths: dict[str, DeclaredClass] = {}
    for declared in declaration.classes:
        _add(paths, str(separator).join(path(declared, ())), declared, declaration)
    return paths
