"""What machines decide in one go, and the queue of what people should look at."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

SAMPLE_ID = sa.String(32).with_variant(postgresql.VARCHAR(32, collation="C"), "postgresql")
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Nothing of what is there changes: what rules and models said before were proposals, and stay so."""
    op.add_column("label_events", sa.Column("sweep_id", sa.Integer))
    op.create_index(
        "label_events_of_sweep",
        "label_events",
        ["sweep_id", "sample_id"],
        sqlite_where=sa.text("sweep_id IS NOT NULL"),
        postgresql_where=sa.text("sweep_id IS NOT NULL"),
    )
    op.create_table(
        "sweeps",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id"), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("undoes", sa.Integer),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
    )
    op.create_table(
        "review_items",
        sa.Column("id", ROW_NUMBER, sa.Identity(), primary_key=True),
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id"), nullable=False),
        sa.Column("sample_id", SAMPLE_ID, nullable=False),
        sa.Column("reason", sa.String(24), nullable=False),
        sa.Column("value", sa.Float, nullable=False),
        sa.Column("proposed", sa.Text),
        sa.Column("proposed_by", sa.Text),
        sa.Column("confidence", sa.Float),
        sa.Column("taxonomy_version", sa.Integer, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("claimed_by", sa.Text),
        sa.Column("lease_until", sa.Text),
        sa.Column("closed_at", sa.Text),
        sa.Column("last_event", ROW_NUMBER, nullable=False),
        sa.Column("passed", sa.Text),
    )
    is_open = sa.text("state = 'open'")
    for name, first in (("review_items_open", ["library_id"]), ("review_items_by_reason", ["library_id", "reason"])):
        op.create_index(
            name,
            "review_items",
            [*first, sa.text("value DESC"), "id", "state"],
            sqlite_where=is_open,
            postgresql_where=is_open,
        )
    for name, columns, which in (
        ("review_items_closed", ["library_id", "state", "reason"], sa.text("state <> 'open'")),
        ("review_items_held", ["library_id", "lease_until"], sa.text("lease_until IS NOT NULL")),
    ):
        op.create_index(name, "review_items", columns, sqlite_where=which, postgresql_where=which)
    op.create_index(
        "review_items_of_sample",
        "review_items",
        ["library_id", "sample_id"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_table(
        "review_decisions",
        sa.Column("id", ROW_NUMBER, primary_key=True),
        sa.Column("item_id", ROW_NUMBER, sa.ForeignKey("review_items.id"), nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("action", sa.String(8), nullable=False),
        sa.Column("labels", sa.Text),
        sa.Column("taxonomy_version", sa.Integer, nullable=False),
        sa.Column("event_id", ROW_NUMBER),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
    )
    op.create_index("review_decisions_of_item", "review_decisions", ["item_id", "person"])
    op.create_index("review_decisions_by_time", "review_decisions", ["at"])
    for statement in _APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)


_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table}"
        f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for table in ("sweeps", "review_decisions")
        for change in ("UPDATE", "DELETE")
    ],
    "postgresql": [  # the function comes from 0004
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_history()"
        for table in ("sweeps", "review_decisions")
    ],
}
