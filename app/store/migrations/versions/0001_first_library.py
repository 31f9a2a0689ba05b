"""The first library: samples, append-only label events, snapshots."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

SAMPLE_ID = sa.String(32).with_variant(postgresql.VARCHAR(32, collation="C"), "postgresql")
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables, and the trigger that keeps label events as they were written."""
    op.create_table(
        "libraries",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("taxonomy", sa.Text, nullable=False),
        sa.Column("declared", sa.Boolean, nullable=False),
        sa.Column("label_sep", sa.Text),
        sa.Column("normaliser", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
    )
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("imported_at", sa.Text, nullable=False),
        sa.UniqueConstraint("library_id", "name", "sha256"),
    )
    op.create_table(
        "samples",
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id"), primary_key=True),
        sa.Column("id", SAMPLE_ID, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("pair", sa.Text),
        sa.Column("raw_text", sa.Text),
        sa.Column("raw_pair", sa.Text),
        sa.Column("duplicate_group", sa.BigInteger, nullable=False),
        sa.Column("imported_split", sa.SmallInteger),
        sa.Column("source_id", sa.Integer, nullable=False),
        sa.Column("line", sa.Integer, nullable=False),
    )
    op.create_table(
        "label_events",
        sa.Column("id", ROW_NUMBER, primary_key=True),
        sa.Column("library_id", sa.Integer, nullable=False),
        sa.Column("sample_id", SAMPLE_ID, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("actor_kind", sa.String(8), nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("source_id", sa.Integer),
        sa.Column("line", sa.Integer),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("confidence", sa.Float),
        sa.Column("note", sa.Text),
        sa.ForeignKeyConstraint(["library_id", "sample_id"], ["samples.library_id", "samples.id"]),
        sa.CheckConstraint("actor_kind IN ('import', 'person', 'rule', 'model')", name="actor_kind"),
    )
    op.create_index("label_events_of_sample", "label_events", ["library_id", "sample_id"])
    op.create_table(
        "snapshots",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id"), nullable=False),
        sa.Column("hash", sa.String(32), nullable=False),
        sa.Column("parent", sa.String(32)),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
    )
    for statement in _APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)


_APPEND_ONLY = {
    "sqlite": [
        "CREATE TRIGGER label_events_no_update BEFORE UPDATE ON label_events"
        " BEGIN SELECT RAISE(ABORT, 'label events are append-only'); END",
        "CREATE TRIGGER label_events_no_delete BEFORE DELETE ON label_events"
        " BEGIN SELECT RAISE(ABORT, 'label events are append-only'); END",
    ],
    "postgresql": [
        "CREATE FUNCTION refuse_label_event_change() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'label events are append-only'; END $$",
        "CREATE TRIGGER label_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON label_events"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_label_event_change()",
    ],
}
