"""Taxonomies with versions, rollbacks, and the catalogue that lists and searches go by."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

SAMPLE_ID = sa.String(32).with_variant(postgresql.VARCHAR(32, collation="C"), "postgresql")
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Libraries start with the taxonomy they have as version 1; their catalogues are made when first needed."""
    op.add_column("libraries", sa.Column("classes", sa.Text, nullable=False, server_default="{}"))
    op.add_column("libraries", sa.Column("taxonomy_version", sa.Integer, nullable=False, server_default="1"))
    op.add_column("libraries", sa.Column("catalogue_stale", sa.Boolean, nullable=False, server_default=sa.true()))
    op.add_column("label_events", sa.Column("taxonomy_version", sa.Integer, nullable=False, server_default="1"))
    op.add_column("snapshots", sa.Column("last_event", ROW_NUMBER))
    op.add_column("snapshots", sa.Column("taxonomy_version", sa.Integer))
    op.add_column("snapshots", sa.Column("last_rollback", sa.Integer))
    op.create_table(
        "taxonomy_changes",
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("meanings", sa.Text, nullable=False),
        sa.Column("base", sa.Integer),
        sa.Column("undoes", sa.Integer),
        sa.Column("taxonomy", sa.Text, nullable=False),
        sa.Column("classes", sa.Text, nullable=False),
        sa.Column("declared", sa.Boolean, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
    )
    op.create_table(
        "rollbacks",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("library_id", sa.Integer, sa.ForeignKey("libraries.id"), nullable=False),
        sa.Column("snapshot", sa.String(32), nullable=False),
        sa.Column("after", ROW_NUMBER, nullable=False),
        sa.Column("until", ROW_NUMBER, nullable=False),
        sa.Column("base", sa.Integer, nullable=False),
        sa.Column("taxonomy_version", sa.Integer, nullable=False),
        sa.Column("undoes", sa.Integer),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
    )
    op.create_table(
        "catalogue",
        sa.Column("number", ROW_NUMBER, sa.Identity(), primary_key=True),
        sa.Column("library_id", sa.Integer, nullable=False),
        sa.Column("sample_id", SAMPLE_ID, nullable=False),
        sa.Column("labels", sa.Text),
        sa.Column("conflict", sa.Boolean, nullable=False),
        sa.Column("event", ROW_NUMBER),
    )
    op.create_index("catalogue_of_sample", "catalogue", ["library_id", "sample_id"], unique=True)
    op.create_index("catalogue_by_arrival", "catalogue", ["library_id", "number"])
    op.create_index("catalogue_by_labels", "catalogue", ["library_id", "labels", "number"])
    op.create_index(
        "catalogue_conflicts",
        "catalogue",
        ["library_id", "number"],
        sqlite_where=sa.text("conflict"),
        postgresql_where=sa.text("conflict"),
    )
    op.execute(
        "INSERT INTO taxonomy_changes"
        " (library_id, version, kind, asked, meanings, taxonomy, classes, declared, actor, created_at)"
        " SELECT id, 1, 'start', '{}', '{}', taxonomy, '{}', declared, 'wenlei', created_at FROM libraries"
    )
    for statement in _SEARCH[op.get_bind().dialect.name] + _APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)


# A text is found by its pairs of neighbouring characters, and by its last character alone: so every character begins
# one of its terms. PostgreSQL works the terms out itself, in an index on an expression; on SQLite, imports give them.
_SEARCH = {
    "sqlite": [
        "CREATE VIRTUAL TABLE catalogue_bigrams USING fts5"
        " (terms, content='', detail=none, columnsize=0, tokenize='ascii')"
    ],
    "postgresql": [
        # in place, in one array, and by bytes: three times as fast as with unnest and lead, and in any locale the same
        "CREATE FUNCTION wenlei_bigrams(given text) RETURNS tsvector"
        " LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$"
        ' DECLARE chars text[] := string_to_array(lower(given COLLATE "C"), NULL);'
        " BEGIN FOR i IN 1 .. cardinality(chars) - 1 LOOP chars[i] := chars[i] || chars[i + 1]; END LOOP;"
        " RETURN array_to_tsvector(chars); END $$",
        "CREATE INDEX samples_bigrams ON samples"
        " USING gin (wenlei_bigrams(CASE WHEN pair IS NULL THEN text ELSE text || E'\\n' || pair END))",
    ],
}
_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table}"
        f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for table in ("taxonomy_changes", "rollbacks")
        for change in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE FUNCTION refuse_change_of_history() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$",
        *(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_history()"
            for table in ("taxonomy_changes", "rollbacks")
        ),
    ],
}
