"""`wenlei library list`: the libraries at a glance."""

from rich.table import Table

from app.library.shapes.libraries import LibraryList, library_list
from app.settings import load_settings
from app.store.database import connect, open_database, reading
from app.store.overview import library_overviews
from model.console import JsonFlag, emit


def list_libraries(as_json: JsonFlag = False) -> None:
    """列出样本库 | list the libraries, with how many samples and snapshots each has."""
    with open_database(load_settings()) as engine, connect(engine) as connection, reading(connection):
        found = library_list(library_overviews(connection))
    emit(found, as_json=as_json, render=lambda console: console.print(_table(found)))


def _table(found: LibraryList) -> Table:
    table = Table("样本库\nlibrary", "样本\nsamples", "快照\nsnapshots", "创建\ncreated")
    for library in found["libraries"]:
        table.add_row(library["library"], f"{library['samples']:,}", f"{library['snapshots']}", library["created_at"])
    return table
