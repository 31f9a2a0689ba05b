"""/v1/taxonomy: which classes a library has. Changes can be foreseen (dry_run), and each is one undoable event."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import FailFast, Field

from app.api.asked import DryRun
from app.api.bodies import PROBLEMS, Body, LabelName, Note, OfLibrary, Stretch
from app.api.deps import Asker, Database
from app.api.work import Work
from app.library.cells import MAX_LABEL_CHARS, label_name
from app.library.declarations import MAX_LEVELS, Declaration, DeclaredClass
from app.library.definition import MAX_LABELS
from app.library.naming import MAX_DESCRIPTION_CHARS, MAX_REVIEWERS
from app.library.revisions import add, describe, merge, move, remove, rename, split
from app.library.shapes.taxonomy import (
    TaxonomyShape,
    TouchedShape,
    VersionsShape,
    taxonomy_shape,
    touched_shape,
    versions_shape,
)
from app.library.taxonomies import Change, Undo, change_taxonomy, list_versions, preview_change, show_taxonomy
from app.store.taxonomies import ClassDetails
from model.errors import BadInput
from model.types import Choice, Task

router = APIRouter(prefix="/v1/taxonomy", tags=["taxonomy"], responses=PROBLEMS)

MAX_ALIASES = 100
MAX_SEPARATOR_CHARS = 10
Code = Annotated[str | None, Field(max_length=MAX_LABEL_CHARS, description="编码 | its code")]
Description = Annotated[str | None, Field(max_length=MAX_DESCRIPTION_CHARS, description="说明 | what belongs to it")]
Aliases = Annotated[list[LabelName], Field(max_length=MAX_ALIASES, description="别名 | other names")]
Reviewers = Annotated[
    int, Field(ge=1, le=MAX_REVIEWERS, description="复核人数 | persons who have to agree in a review")
]
Labels = Annotated[list[LabelName], Field(min_length=1, max_length=MAX_LABELS), FailFast()]


class Remark(Body):
    """A change, and what is noted beside it."""

    note: Note = None


class Addition(Remark):
    """A class to add, at the end or `before` another; in a hierarchy by its whole path."""

    label: LabelName = Field(examples=["前台"])
    code: Code = None
    description: Description = None
    aliases: Aliases = Field(default_factory=list)
    before: LabelName | None = None


class Knowledge(Remark):
    """What is known of a class. A field that is left out stays as it is; an empty one is taken away."""

    label: LabelName
    code: Code = None
    description: Description = None
    aliases: Aliases | None = None
    reviewers: Reviewers | None = None


class Removal(Remark):
    """A class to remove; its samples wait for another label."""

    label: LabelName


class Renaming(Remark):
    """A class or a branch, and its new name; the old one stays on as an alias."""

    label: LabelName
    to: LabelName


class Merging(Remark):
    """Classes that become one, which may be new; the old names stay on as aliases."""

    labels: Labels
    into: LabelName


class Splitting(Remark):
    """A class and what comes of it. Its samples go to `rest`, one of these; else they wait for a label."""

    label: LabelName
    into: Labels
    rest: LabelName | None = None


class Moving(Remark):
    """A class or a branch, and its new parent; without one it goes to the top."""

    label: LabelName
    under: LabelName | None = None


class Reversal(Remark):
    """The version to take back, by default the last change that stands."""

    version: int | None = Field(default=None, ge=1, le=2**31 - 1)


class ClassToBe(Body):
    """A class. `name`: a whole path, or one level of it below a `parent`, which is named by name or code."""

    name: LabelName = Field(examples=["好评"])
    parent: LabelName | None = None
    code: Code = None
    description: Description = None
    aliases: Aliases = Field(default_factory=list)
    reviewers: Reviewers = 1


class DeclarationToBe(Remark):
    """All classes of a library, which may be a new one. What is left out stays as it is, or follows from the rest."""

    classes: Annotated[list[ClassToBe], Field(min_length=1, max_length=2 * MAX_LABELS), FailFast()]
    task: Annotated[Task | None, Field(strict=False)] = None
    level_sep: str | None = Field(default=None, min_length=1, max_length=MAX_SEPARATOR_CHARS)
    choices: list[Annotated[Choice, Field(strict=False)]] | None = Field(default=None, max_length=MAX_LEVELS)

    def declaration(self) -> Declaration:
        """As a file would declare it; the number of a class is that of its line.

        Raises:
            BadInput: a class has no name.
        """
        return Declaration(
            file="classes",
            classes=tuple(_declared(each, number) for number, each in enumerate(self.classes, start=1)),
            task=self.task,
            level_sep=self.level_sep,
            choices=None if self.choices is None else tuple(self.choices),
        )


def _declared(given: ClassToBe, number: int) -> DeclaredClass:
    name = label_name(given.name)
    if not name:
        raise BadInput(f"classes, line {number}: the class has no name")
    details = ClassDetails(
        code=label_name(given.code or "") or None,
        description=(given.description or "").strip() or None,
        aliases=tuple(dict.fromkeys(alias for each in given.aliases if (alias := label_name(each)))),
        reviewers=given.reviewers,
    )
    return DeclaredClass(name, label_name(given.parent or ""), details, number)


class Place(OfLibrary, DryRun):
    """Of which library, and whether in earnest."""


class Versions(OfLibrary, Stretch):
    """Which versions, of which library."""


@dataclass(frozen=True, slots=True)
class Put:
    """Callable: puts a change into force in the name of the key's user, or with `dry_run` shows what it would touch."""

    engine: Database
    asker: Asker
    work: Work
    where: Annotated[Place, Query()]

    def __call__(self, change: Change, note: str | None) -> TouchedShape:
        """What the change touches, or would touch."""
        with self.work.tasks.one(self.asker.user):
            if self.where.dry_run:
                return touched_shape(preview_change(self.engine, self.where.library, change), applied=False)
            done = change_taxonomy(self.engine, self.where.library, change, by=self.asker.user, note=note)
        return touched_shape(done, applied=True)


Into = Annotated[Put, Depends()]


@router.get("", summary="标签体系 | The classes, and how many samples carry each")
def show(engine: Database, of: Annotated[OfLibrary, Query()]) -> TaxonomyShape:
    """The taxonomy as it is now."""
    return taxonomy_shape(*show_taxonomy(engine, of.library))


@router.get("/versions", summary="标签体系的版本 | All versions of the taxonomy")
def versions(engine: Database, asked: Annotated[Versions, Query()]) -> VersionsShape:
    """Who changed what, when; oldest first."""
    found = list_versions(engine, asked.library)
    return versions_shape(asked.library, found, offset=asked.offset, limit=asked.limit)


@router.post("/declare", summary="声明全部类别 | Declare all classes")
def declare_classes(body: DeclarationToBe, put: Into) -> TouchedShape:
    """Say which classes there are, in a new library or in one that has grown; imports add none from then on."""
    return put(body.declaration(), body.note)


@router.post("/add", summary="新增类别 | Add a class")
def add_class(body: Addition, put: Into) -> TouchedShape:
    """One class more."""
    details = ClassDetails(body.code, body.description, tuple(body.aliases))
    return put(add(body.label, details, before=body.before), body.note)


@router.post("/describe", summary="更改编码、说明、别名、复核人数 | Change what is known of a class")
def describe_class(body: Knowledge, put: Into) -> TouchedShape:
    """Change the code, the description or the aliases of a class, or how many persons review it."""
    if (body.code, body.description, body.aliases, body.reviewers) == (None, None, None, None):
        raise BadInput("nothing to change; give code, description, aliases or reviewers")
    change = describe(
        body.label,
        code=body.code,
        description=body.description,
        aliases=body.aliases,
        reviewers=body.reviewers,
    )
    return put(change, body.note)


@router.post("/remove", summary="删除类别 | Remove a class")
def remove_class(body: Removal, put: Into) -> TouchedShape:
    """One class less; its samples wait for another label."""
    return put(remove(body.label), body.note)


@router.post("/rename", summary="改名 | Rename a class or a branch")
def rename_class(body: Renaming, put: Into) -> TouchedShape:
    """Another name; the old one stays on as an alias."""
    return put(rename(body.label, body.to), body.note)


@router.post("/merge", summary="合并类别 | Merge classes")
def merge_classes(body: Merging, put: Into) -> TouchedShape:
    """Several classes become one."""
    return put(merge(body.labels, into=body.into), body.note)


@router.post("/split", summary="拆分类别 | Split a class")
def split_class(body: Splitting, put: Into) -> TouchedShape:
    """One class becomes several."""
    return put(split(body.label, into=body.into, rest=body.rest), body.note)


@router.post("/move", summary="移动类别或分支 | Move a class or a branch")
def move_class(body: Moving, put: Into) -> TouchedShape:
    """Another parent for a class or a branch."""
    return put(move(body.label, under=body.under), body.note)


@router.post("/undo", summary="撤销一次更改 | Undo a change")
def undo_change(put: Into, body: Reversal = Reversal()) -> TouchedShape:
    """Take a version back; undo the undo to bring it back."""
    return put(Undo(body.version), body.note)
