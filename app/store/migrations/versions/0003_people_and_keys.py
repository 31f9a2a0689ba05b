"""People and keys: users, their API keys, and the log of who did what."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables, and the trigger that keeps audit events as they were written."""
    op.create_table(
        "users",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("revoked_at", sa.Text),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(12), primary_key=True),
        sa.Column("user_id", sa.Integer, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("rate", sa.Text),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Text),
        sa.Column("revoked_at", sa.Text),
    )
    op.create_table(
        "audit_events",
        sa.Column("id", ROW_NUMBER, primary_key=True),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
    )
    for statement in _APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)


_APPEND_ONLY = {
    "sqlite": [
        "CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events"
        " BEGIN SELECT RAISE(ABORT, 'audit events are append-only'); END",
        "CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events"
        " BEGIN SELECT RAISE(ABORT, 'audit events are append-only'); END",
    ],
    "postgresql": [
        "CREATE FUNCTION refuse_audit_event_change() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'audit events are append-only'; END $$",
        "CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_event_change()",
    ],
}
