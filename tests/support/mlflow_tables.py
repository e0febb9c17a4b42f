"""MLflow's tables in a new SQLite file, which it makes in two seconds, are copied from those that it made first.

It also reads seventy migrations for the name of the last one whenever it opens a store, here only once.
"""

import contextlib
import os
import sqlite3
from functools import cache

import mlflow.store.db.utils as mlflow_database
import sqlalchemy

import shared


def copy_tables() -> None:
    """Lets MLflow do so in this process and its forks; all workers share the tables."""
    initialize, kept = mlflow_database._initialize_tables, shared.folder() / "tables.db"

    def initialize_once(engine: sqlalchemy.Engine) -> None:
        if engine.dialect.name != "sqlite" or sqlalchemy.inspect(engine).get_table_names():
            initialize(engine)
            return
        new = not kept.is_file()
        if new:
            initialize(engine)
        made = kept.with_suffix(f".{os.getpid()}")
        with (
            contextlib.closing(engine.raw_connection()) as used,
            contextlib.closing(sqlite3.connect(made if new else kept)) as other,
        ):
            if new:
                used.driver_connection.backup(other)
                made.replace(kept)
            else:
                other.backup(used.driver_connection)

    mlflow_database._initialize_tables = initialize_once
    mlflow_database._get_latest_schema_revision = cache(mlflow_database._get_latest_schema_revision)
