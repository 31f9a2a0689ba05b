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
    # label → its code, description and aliases, as JSON
    sa.Column("classes", sa.Text, nullable=False, server_default="{}"),
    sa.Column("taxonomy_version", sa.Integer, nullable=False, server_default="1"),
    # whether the catalogue has to be made anew before it can be read
    sa.Column("catalogue_stale", sa.Boolean, nullable=False, server_default=sa.true()),
)

# Append-only: every version of a library's taxonomy, and what became of the labels of the version before.
taxonomy_changes = sa.Table(
    "taxonomy_changes",
    metadata,
    sa.Column("library_id", sa.ForeignKey("libraries.id"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),  # 1, 2, 3, …
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("asked", sa.Text, nullable=False),  # what was asked for, as a JSON object
    sa.Column("meanings", sa.Text, nullable=False),  # label of the version before → list of labels of this one
    sa.Column("base", sa.Integer),  # a version whose labels mean in this one what they meant there
    sa.Column("undoes", sa.Integer),
    sa.Column("taxonomy", sa.Text, nullable=False),
    sa.Column("classes", sa.Text, nullable=False),
    sa.Column("declared", sa.Boolean, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("note", sa.Text),
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
    sa.Column("taxonomy_version", sa.Integer, nullable=False, server_default="1"),  # that the labels were given in
    sa.Column("sweep_id", sa.Integer),
    sa.ForeignKeyConstraint(["library_id", "sample_id"], ["samples.library_id", "samples.id"]),
    sa.CheckConstraint("actor_kind IN ('import', 'person', 'rule', 'model')", name="actor_kind"),
    sa.Index("label_events_of_sample", "library_id", "sample_id"),
    sa.Index(
        "label_events_of_sweep",
        "sweep_id",
        "sample_id",
        sqlite_where=sa.text("sweep_id IS NOT NULL"),
        postgresql_where=sa.text("sweep_id IS NOT NULL"),
    ),
)

# Append-only: what a machine decided in one go, such as the doctor's cleaning. Its events count as labels, and an empty
# list of labels takes a sample's label away; what rules and models say outside of sweeps are proposals.
sweeps = sa.Table(
    "sweeps",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("library_id", sa.ForeignKey("libraries.id"), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("actor", sa.Text, nullable=False),  # the machine
    sa.Column("asked", sa.Text, nullable=False),  # with which settings, a JSON object
    sa.Column("outcome", sa.Text, nullable=False),  # what came of it, a JSON object
    sa.Column("undoes", sa.Integer),  # a sweep, all of whose events this one withdraws
    sa.Column("by", sa.Text, nullable=False),  # the person who had it done
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("note", sa.Text),
)

# What people should look at: one open item a sample at most.
review_items = sa.Table(
    "review_items",
    metadata,
    sa.Column("id", RowNumber, sa.Identity(), primary_key=True),
    sa.Column("library_id", sa.ForeignKey("libraries.id"), nullable=False),
    sa.Column("sample_id", SampleId, nullable=False),
    sa.Column("reason", sa.String(24), nullable=False),
    sa.Column("value", sa.Float, nullable=False),  # what a look at it is worth; the greatest comes first
    sa.Column("proposed", sa.Text),  # a sorted JSON list of labels
    sa.Column("proposed_by", sa.Text),
    sa.Column("confidence", sa.Float),
    sa.Column("taxonomy_version", sa.Integer, nullable=False),  # that the labels were proposed in
    sa.Column("details", sa.Text, nullable=False),  # JSON object
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("state", sa.String(8), nullable=False),  # open, or done, or settled elsewhere
    sa.Column("claimed_by", sa.Text),
    sa.Column("lease_until", sa.Text),
    sa.Column("closed_at", sa.Text),
    sa.Column("last_event", RowNumber, nullable=False),  # the newest when it was asked for, or claimed
    sa.Column("passed", sa.Text),  # who has decided or skipped it, each between line ends; see `app.store.review_items`
    sa.Index(
        "review_items_of_sample",
        "library_id",
        "sample_id",
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    ),
)

# For counting them.
sa.Index(
    "review_items_closed",
    review_items.c.library_id,
    review_items.c.state,
    review_items.c.reason,
    sqlite_where=sa.text("state <> 'open'"),
    postgresql_where=sa.text("state <> 'open'"),
)
sa.Index(
    "review_items_held",
    review_items.c.library_id,
    review_items.c.lease_until,
    sqlite_where=sa.text("lease_until IS NOT NULL"),
    postgresql_where=sa.text("lease_until IS NOT NULL"),
)
# In the order in which they are given out: of all, and of those with one reason.
for _name, _first in (("review_items_open", ("library_id",)), ("review_items_by_reason", ("library_id", "reason"))):
    sa.Index(
        _name,
        *(review_items.c[column] for column in _first),
        review_items.c.value.desc(),
        review_items.c.id,
        review_items.c.state,  # SQLite counts by the index alone then
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )

# Append-only: who decided what about an item; the newest word of a person counts. Where a class asks for two persons,
# what the first one says is here alone until a second one agrees; then both become label events.
review_decisions = sa.Table(
    "review_decisions",
    metadata,
    sa.Column("id", RowNumber, primary_key=True),
    sa.Column("item_id", sa.ForeignKey("review_items.id"), nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column(
        "action", sa.String(8), nullable=False
    ),  # accept, change, none, skip; undo; agreed: a word became an event
    sa.Column("labels", sa.Text),
    sa.Column("taxonomy_version", sa.Integer, nullable=False),
    sa.Column("event_id", RowNumber),  # the label event that was written with it
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("note", sa.Text),
    sa.Index("review_decisions_of_item", "item_id", "person"),
    sa.Index("review_decisions_by_time", "at"),
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
    # the last label event and the last rollback that it could see, and the version of the taxonomy
    sa.Column("last_event", RowNumber),
    sa.Column("taxonomy_version", sa.Integer),
    sa.Column("last_rollback", sa.Integer),
)

# Append-only: of the label events up to `until`, those count that did after event `after` and rollback `base`.
rollbacks = sa.Table(
    "rollbacks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("library_id", sa.ForeignKey("libraries.id"), nullable=False),
    sa.Column("snapshot", sa.String(32), nullable=False),
    sa.Column("after", RowNumber, nullable=False),
    sa.Column("until", RowNumber, nullable=False),
    sa.Column("base", sa.Integer, nullable=False),  # 0 for none
    sa.Column("taxonomy_version", sa.Integer, nullable=False),  # that it made
    sa.Column("undoes", sa.Integer),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("note", sa.Text),
)

# What lists and searches go by: a row for every sample, made from the samples and their events, so that it can be
# made again. The search index hangs on it: an FTS5 table on SQLite, an index on PostgreSQL (see `app.store.bigrams`).
catalogue = sa.Table(
    "catalogue",
    metadata,
    sa.Column("number", RowNumber, sa.Identity(), primary_key=True),  # in the order of arrival
    sa.Column("library_id", sa.Integer, nullable=False),
    sa.Column("sample_id", SampleId, nullable=False),
    sa.Column("labels", sa.Text),  # the current ones, a sorted JSON list
    sa.Column("conflict", sa.Boolean, nullable=False),
    sa.Column("event", RowNumber),  # that the labels come from
    sa.Index("catalogue_of_sample", "library_id", "sample_id", unique=True),
    sa.Index("catalogue_by_arrival", "library_id", "number"),
    sa.Index("catalogue_by_labels", "library_id", "labels", "number"),
    sa.Index(
        "catalogue_conflicts",
        "library_id",
        "number",
        sqlite_where=sa.text("conflict"),
        postgresql_where=sa.text("conflict"),
    ),
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

# Append-only: the bundles that went live under a name. What is live now follows from all of them.
model_moves = sa.Table(
    "model_moves",
    metadata,
    sa.Column("id", RowNumber, primary_key=True),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("alias", sa.Text, nullable=False),  # champion, challenger, …
    sa.Column("number", sa.Integer, nullable=False),  # 1, 2, 3, … of the alias: of two moves at once one is refused
    sa.Column("action", sa.String(8), nullable=False),  # promote or rollback
    sa.Column("version", sa.String(12), nullable=False),  # of the bundle that is live from here on
    sa.Column("bundle", sa.Text, nullable=False),  # its name
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("snapshot", sa.Text, nullable=False),  # that it was trained on
    sa.Column("verdict", sa.Text, nullable=False),  # of the gate, a JSON object
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("note", sa.Text),
    sa.UniqueConstraint("model", "alias", "number"),
)
