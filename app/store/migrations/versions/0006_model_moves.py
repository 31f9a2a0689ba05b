"""Which bundle is live under which name, and every move that led there."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Nothing of what is there changes."""
    op.create_table(
        "model_moves",
        sa.Column("id", ROW_NUMBER, primary_key=True),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("alias", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("action", sa.String(8), nullable=False),
        sa.Column("version", sa.String(12), nullable=False),
        sa.Column("bundle", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("snapshot", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
        sa.UniqueConstraint("model", "alias", "number"),
    )
    for statement in _APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)


_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER model_moves_no_{change.lower()} BEFORE {change} ON model_moves"
        " BEGIN SELECT RAISE(ABORT, 'model_moves is append-only'); END"
        for change in ("UPDATE", "DELETE")
    ],
    "postgresql": [  # the function comes from 0004
        "CREATE TRIGGER model_moves_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON model_moves"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_history()"
    ],
}
