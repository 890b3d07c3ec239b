"""Fixtures that every suite shares: one PostgreSQL per worker, a fresh database of each kind per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.databases import empty_postgres_database
from tests.helpers.postgres import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for this worker."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    with empty_postgres_database(request.getfixturevalue("postgres")) as url:
        yield url
