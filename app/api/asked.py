"""What every body and query of ours has in common: a name that nobody knows is refused, never passed over."""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_NAME = 64

Plain = Annotated[str, StringConstraints(pattern=r"^\w[\w.-]*$", max_length=MAX_NAME)]
HashStart = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4,32}$")]
PathLibrary = Annotated[Plain, Path(alias="name", description="样本库名称 | name of the library")]
PathSnapshot = Annotated[HashStart, Path(description="快照哈希或其开头 | hash of a snapshot, or its beginning")]


class Asked(BaseModel):
    """A body or a query: `dry_run` misspelt must not do the real thing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DryRun(Asked):
    """Whether to look only."""

    dry_run: bool = Field(default=False, description="只预览 | look only, change nothing")
