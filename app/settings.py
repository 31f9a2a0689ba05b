"""Settings: read once from WENLEI_* variables, frozen from then on."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from model.errors import BadInput

# What people and platforms write → the name of the driver that we ship.
_DRIVERS = {"postgres://": "postgresql+psycopg://", "postgresql://": "postgresql+psycopg://"}


class Settings(BaseSettings):
    """home: the folder of everything that wenlei keeps. database_url: SQLite in `home`, or any PostgreSQL.

    bundles: the folders of the models to serve, the default one first; joined by `:` in the variable.
    precision: of the model that runs, by default its smallest. workers: batches that run at a time.
    queue_size: texts that may wait or run. max_texts: texts of one request. debug: show tracebacks.
    max_body_bytes: of one request; max_upload_bytes: of a file that is imported over HTTP.
    require_keys: ask for keys on loopback too; elsewhere they are always asked for.
    """

    model_config = SettingsConfigDict(
        env_prefix="WENLEI_", env_ignore_empty=True, frozen=True, extra="ignore", hide_input_in_errors=True
    )

    home: Path = Path("var")
    # secret because it may hold a password, which must not reach a log or a message
    database_url: SecretStr = Field(default_factory=lambda data: SecretStr(f"sqlite:///{data['home']}/wenlei.db"))

    bundles: Annotated[tuple[Path, ...], NoDecode] = ()
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    require_keys: bool = False
    device: Literal["cpu", "cuda"] = "cpu"
    precision: str | None = None
    workers: int = Field(default_factory=lambda: min(2, os.cpu_count() or 1), ge=1, le=256)
    queue_size: int = Field(default=2000, ge=1)
    max_texts: int = Field(default=1000, ge=1)
    max_body_bytes: int = Field(default=4 << 20, ge=1024)
    max_upload_bytes: int = Field(default=8 << 30, ge=1024)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    debug: bool = False

    @field_validator("database_url")
    @classmethod
    def _with_driver(cls, url: SecretStr) -> SecretStr:
        text = url.get_secret_value()
        for prefix, driver in _DRIVERS.items():
            if text.startswith(prefix):
                return SecretStr(driver + text.removeprefix(prefix))
        return url

    @field_validator("bundles", mode="before")
    @classmethod
    def _split_folders(cls, value: Any) -> Any:
        return value.split(os.pathsep) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _queue_holds_a_request(self) -> "Settings":
        if self.queue_size < self.max_texts:
            raise ValueError(f"WENLEI_QUEUE_SIZE={self.queue_size} is less than WENLEI_MAX_TEXTS={self.max_texts}")
        return self


def load_settings(**given: Any) -> Settings:
    """The settings of this process; what is `given` and not None goes before the variables.

    Raises:
        BadInput: a WENLEI_* variable holds a value that can't be used; the message names it, not the value.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = (
            ": ".join([*(f"WENLEI_{str(name).upper()}" for name in problem["loc"][:1]), problem["msg"]])
            for problem in error.errors()
        )
        raise BadInput("; ".join(problems)) from None
