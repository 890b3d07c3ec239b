"""Runs a line of migrations on the connection that migrate.py holds open and locked."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"], version_table=context.config.attributes["version_table"]
)
with context.begin_transaction():
    context.run_migrations()
