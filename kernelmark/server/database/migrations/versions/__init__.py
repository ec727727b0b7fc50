"""The steps of the schema, each in a module; Alembic loads them by path."""
