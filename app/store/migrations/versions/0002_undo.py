"""Undo: an event that withdraws an earlier one."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Give label events a place for the event that they withdraw; those there are withdraw none."""
    op.add_column("label_events", sa.Column("undoes", ROW_NUMBER))
