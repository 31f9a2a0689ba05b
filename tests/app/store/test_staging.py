"""Staging: what the database refuses is told without the data."""

import pytest

from app.settings import Settings
from app.store.database import connect, open_database
from app.store.staging import StagedRow, Staging
from model.errors import DatabaseUnavailable


def test_a_batch_that_the_database_refuses_is_told_without_its_rows(settings: Settings) -> None:
    row = StagedRow(
        id="00", text="机密", pair=None, raw_text=None, raw_pair=None, duplicate_group=1, split=None, labels=None,
        file=None, line=1,  # type: ignore[arg-type]
    )  # fmt: skip
    with (
        open_database(settings) as engine,
        pytest.raises(DatabaseUnavailable, match=r"(?i)not.null constraint") as refused,
        connect(engine) as connection,
        connection.begin(),
    ):
        Staging(connection).add([row])
    assert "机密" not in str(refused.value)
