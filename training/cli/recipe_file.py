"""`--recipe`: options from a TOML file."""

import tomllib
from pathlib import Path

import typer

from model.errors import BadInput


def read_recipe(context: typer.Context, path: Path | None) -> Path | None:
    """Let the options that are not given be those of a TOML file.

    Raises:
        BadInput: it can't be read, or has a key that is no option.
    """
    if path is None:
        return None
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"--recipe {path} can't be read: {error}") from None
    known = {option.name for option in context.command.params}
    if unknown := sorted(given.keys() - known):
        raise BadInput(
            f"--recipe {path}: {', '.join(unknown)} is no option of wenlei train; write learning_rate = 1e-4"
        )
    context.default_map = {**(context.default_map or {}), **given}
    return path
