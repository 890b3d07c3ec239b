"""Tests of the stores on a server that speaks PostgreSQL's SQL and little more: `make portable`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
from sqlalchemy import Connection

from pointsman.services.chassis.core.config import FEATURES_PARAMETER
from pointsman.services.chassis.storage.database import Database

VARIABLE = "POINTSMAN_DATABASE_FEATURES"
CONFLICT_EVERY = 7
"""Of the commits of a process at SERIALIZABLE, every seventh fails as if another transaction had been faster."""
_commits = count(1)
is_injecting = True
"""Off in tests that count how often something is tried."""


def portable(url: str) -> str:
    """The address of a PostgreSQL database, used without what other servers lack."""
    return f"{url}{'&' if '?' in url else '?'}{FEATURES_PARAMETER}=portable"


def as_configured(url: str) -> str:
    """The address, for portable SQL only where the environment asks for it."""
    return portable(url) if os.environ.get(VARIABLE) == "portable" else url


def conflict_now_and_then() -> None:
    """From now on some commits at SERIALIZABLE fail with SQLSTATE 40001."""
    transaction = Database.transaction

    @contextmanager
    def conflicting(self: Database, connection: Connection) -> Iterator[None]:
        with transaction(self, connection):
            yield
            if self.features.serializable and is_injecting and next(_commits) % CONFLICT_EVERY == 0:
                raise psycopg.errors.SerializationFailure("injected")

    Database.transaction = conflicting  # type: ignore[method-assign]
