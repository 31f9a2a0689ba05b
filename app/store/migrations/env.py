"""Run by Alembic: applies the numbered steps on the connection that `app.store.database` hands over."""

from alembic import context

from app.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
