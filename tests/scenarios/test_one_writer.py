"""A SQLite store has one process that writes it, however that process was started; a PostgreSQL may have many."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.databases import empty_postgres_database
from tests.helpers.postgres import PostgresServer
from tests.scenarios.commands import ROOT, finished, running

PORTS = {"POINTSMAN_GATEWAY_PORT": "0", "POINTSMAN_SERVER_PORT": "0"}


def assert_refused(told: tuple[int, str], owner: str, file: Path) -> None:
    """Exit 1, the file, who has it and where, and what to do."""
    code, printed = told
    assert code == 1, printed
    assert "Traceback" not in printed
    for word in (str(file), "process", owner, "stop it, connect to it", "POINTSMAN_DATA"):
        assert word in printed


def test_while_everything_is_up_no_service_and_no_migration_writes_beside_it(tmp_path: Path) -> None:
    settings = {"POINTSMAN_DATA": str(tmp_path), **PORTS}
    with running("up", "--port", "0", **settings) as plane:
        address = plane.line_with(" up at ").split()[4]
        assert_refused(finished("serve", "router", **settings), address, tmp_path / "router.db")
        assert_refused(finished("migrate", **settings), address, tmp_path / "router.db")
        assert plane.stop() == 0
    assert finished("migrate", **settings)[0] == 0


def test_a_service_of_its_own_keeps_everything_else_off_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"POINTSMAN_DATA": str(tmp_path), **PORTS}
    with running("serve", "pipeline", **settings) as service:
        address = service.line_with(" up at ").split()[4].rstrip(".")
        assert_refused(finished("up", "--port", "0", **settings), address, tmp_path / "pipeline.db")
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        module = subprocess.run(
            [sys.executable, "-m", "pointsman.services.pipeline"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert_refused((module.returncode, module.stderr), address, tmp_path / "pipeline.db")


def test_on_postgresql_many_processes_serve_and_migrate_side_by_side(postgres: PostgresServer, tmp_path: Path) -> None:
    with empty_postgres_database(postgres) as url:
        settings = {"POINTSMAN_DATA": str(tmp_path), "POINTSMAN_DATABASE_URL": url, **PORTS}
        with running("up", "--port", "0", **settings) as plane, running("serve", "router", **settings) as service:
            plane.line_with(" up at ")
            service.line_with(" up at ")
            assert finished("migrate", **settings)[0] == 0
