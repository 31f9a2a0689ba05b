"""What bodies and queries about a library's samples and classes are made of, and what else routes answer."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from app.api.asked import Asked, Plain
from app.api.schemas import ErrorResponse
from app.library.cells import MAX_LABEL_CHARS
from app.library.labelling import MAX_NOTE_CHARS

PAGE_SIZE, MAX_PAGE_SIZE = 20, 500
MAX_NUMBER = 2**63 - 1  # that a column of numbers can hold
MAX_POSITION = 2**31 - 1  # more samples, versions or pages there are not


class Body(Asked):
    """A JSON object. Its values have their types: "1" is no number, and 1 is no text."""

    model_config = ConfigDict(strict=True)


class OfLibrary(Asked):
    """Which library is meant."""

    library: Plain = Field(default="default", description="样本库名称 | name of the library")


class Stretch(Asked):
    """Which of many things are listed."""

    limit: int = Field(default=PAGE_SIZE, ge=1, le=MAX_PAGE_SIZE, description="最多几条 | at most so many")
    offset: int = Field(default=0, ge=0, le=MAX_POSITION, description="跳过前几条 | after the first so many")


def _storable(value: str) -> str:
    if "\0" in value:
        raise PydanticCustomError("nul", "a NUL character can't be part of it")  # nor could PostgreSQL keep it
    return value


Words = Annotated[str, AfterValidator(_storable)]
LabelName = Annotated[str, Field(min_length=1, max_length=MAX_LABEL_CHARS)]
Note = Annotated[str | None, Field(max_length=MAX_NOTE_CHARS, description="备注 | a note")]

# /docs shows them.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "不是 JSON | not JSON",
        401: "需要密钥 | a key is needed",
        403: "密钥权限不够 | the key's scope is too narrow",
        404: "没有这个样本库、样本或事件 | no such library, sample or event",
        422: "请求内容有误 | not a valid request",
        429: "请求过频 | too many requests with this key",
        503: "数据库不可用或服务繁忙 | the database can't be reached, or the server is busy",
    }.items()
}
