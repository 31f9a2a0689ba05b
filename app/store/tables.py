"""The tables. Migrations make them; a test holds the two together.

Times are ISO 8601 in UTC and lists are JSON, both as text: they read, sort and compare alike on both databases.
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

# Ids sort by their bytes everywhere, as the order of a snapshot's rows; PostgreSQL's default order is the locale's.
SampleId = sa.String(32).with_variant(postgresql.VARCHAR(32, collation="C"), "postgresql")
# SQLite numbers rows by itself only in a column of type INTEGER.
RowNumber = sa.BigInteger().with_variant(sa.Integer, "sqlite")

metadata = sa.MetaData()

libraries = sa.Table(
    "libraries",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("taxonomy", sa.Text, nullable=False),  # model.types.Taxonomy as JSON
    sa.Column("declared", sa.Boolean, nullable=False),  # or grown from what was imported
    sa.Column("label_sep", sa.Text),
    sa.Column("normaliser", sa.Text, nullable=False),  # model.text.Normaliser as JSON
    sa.Column("created_at", sa.Text, nullable=False),
)

# No foreign key points here: PostgreSQL would check it once a row, a fifth of the time that an import takes.
sources = sa.Table(
    "sources",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("library_id", sa.ForeignKey("libraries.id"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),  # of the file on disk, so of the whole archive
    sa.Column("imported_at", sa.Text, nullable=False),
    sa.UniqueConstraint("library_id", "name", "sha256"),
)

samples = sa.Table(
    "samples",
    metadata,
    sa.Column("library_id", sa.ForeignKey("libraries.id"), primary_key=True),
    sa.Column("id", SampleId, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("pair", sa.Text),
    sa.Column("raw_text", sa.Text),  # only where the normaliser changed it
    sa.Column("raw_pair", sa.Text),
    sa.Column("duplicate_group", sa.BigInteger, nullable=False),
    sa.Column("imported_split", sa.SmallInteger),  # position in model.types.Split: the smallest protects most
    sa.Column("source_id", sa.Integer, nullable=False),
    sa.Column("line", sa.Integer, nullable=False),
)

# Append-only: a trigger refuses UPDATE and DELETE. What a sample's label is now follows from its events.
# `undoes`: the event that this one withdraws, whose labels are then an empty list. No foreign key, for imports' sake
# (see `sources`): the event is looked up before it is undone, and none ever goes away.
label_events = sa.Table(
    "label_events",
    metadata,
    sa.Column("id", RowNumber, primary_key=True),
    sa.Column("library_id", sa.Integer, nullable=False),
    sa.Column("sample_id", SampleId, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),  # JSON list, sorted by code point
    sa.Column("actor_kind", sa.String(8), nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("source_id", sa.Integer),
    sa.Column("line", sa.Integer),
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("confidence", sa.Float),
    sa.Column("note", sa.Text),
    sa.Column("undoes", RowNumber),
    sa.ForeignKeyConstraint(["library_id", "sample_id"], ["samples.library_id", "samples.id"]),
    sa.CheckConstraint("actor_kind IN ('import', 'person', 'rule', 'model')", name="actor_kind"),
    sa.Index("label_events_of_sample", "library_id", "sample_id"),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("library_id", sa.ForeignKey("libraries.id"), nullable=False),
    sa.Column("hash", sa.String(32), nullable=False),
    sa.Column("parent", sa.String(32)),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("parameters", sa.Text, nullable=False),
    sa.Column("created_at", sa.Text, nullable=False),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("scope", sa.String(8), nullable=False),  # the widest that a key of theirs may have
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("revoked_at", sa.Text),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.String(12), primary_key=True),  # the part of the key that may be shown
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("scope", sa.String(8), nullable=False),
    sa.Column("rate", sa.Text),
    sa.Column("hash", sa.Text, nullable=False),  # argon2id of its secret part
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("expires_at", sa.Text),
    sa.Column("revoked_at", sa.Text),
)

# Append-only, as label_events: a trigger refuses UPDATE and DELETE.
audit_events = sa.Table(
    "audit_events",
    metadata,
    sa.Column("id", RowNumber, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False),  # JSON object
)
