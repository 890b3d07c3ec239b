"""`pointsman doctor` on healthy and on broken set-ups: each finding says what to do."""

import json
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pointsman.sandbox import Level, available_level
from tests.helpers.eventually import eventually_now
from tests.scenarios.commands import finished, running

NEWER = "9999"


def findings(data: Path, **environment: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what was found, by the check's name."""
    settings = {"POINTSMAN_SERVER_PORT": "0", "POINTSMAN_GATEWAY_PORT": "0"}
    code, printed = finished("doctor", "--json", POINTSMAN_DATA=str(data), **(settings | environment))
    return code, {finding["check"]: finding for finding in json.loads(printed)}


def all_is_well(data: Path) -> dict[str, Any]:
    """What was found, where nothing is wrong; else nothing."""
    code, found = findings(data)
    return {} if code else found


@contextmanager
def taken_port() -> Iterator[str]:
    """A port of loopback on which somebody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield str(server.getsockname()[1])


def test_an_empty_machine_is_fine_and_every_check_says_what_it_saw(tmp_path: Path) -> None:
    code, found = findings(tmp_path / "new")
    assert code == 0, found
    assert all(finding["ok"] and finding["detail"] for finding in found.values())
    assert {"python", "git", "data directory", "router store", "port", "console port", "GenAI spans"} <= set(found)


def test_the_probe_of_the_sandbox_is_printed_line_by_line(tmp_path: Path) -> None:
    data = {"POINTSMAN_DATA": str(tmp_path), "POINTSMAN_SANDBOX_MAX_LEVEL": "none"}
    _, output = finished("doctor", **data)
    assert "isolation: none" in output
    assert "install bubblewrap" in output
    assert "isolation probe: read a credential: possible" in output
    _, output = finished("doctor", POINTSMAN_DATA=str(tmp_path))
    refused = "refused" if available_level() > Level.NONE else "possible"
    assert f"isolation: {available_level()}" in output
    assert f"isolation probe: read the data directory: {refused}" in output


def test_a_machine_that_isolates_less_than_is_required_is_refused(tmp_path: Path) -> None:
    data = {"POINTSMAN_DATA": str(tmp_path), "POINTSMAN_SANDBOX_MAX_LEVEL": "none"}
    for command in (("run", "do it"), ("agent",), ("up",), ("watch", "run_1")):
        code, output = finished(*command, "--require-isolation", "landlock", **data)
        assert code == 2, output
        assert "commands would run at isolation none, and landlock is required" in output
    code, output = finished("up", "--require-isolation", "vault", **data)
    assert code == 2
    assert "'vault' is no isolation level" in output


@pytest.mark.parametrize(
    ("setting", "check"), [("POINTSMAN_SERVER_PORT", "port"), ("POINTSMAN_GATEWAY_PORT", "console port")]
)
def test_a_taken_port_is_named_with_the_setting_that_changes_it(tmp_path: Path, setting: str, check: str) -> None:
    with taken_port() as port:
        code, found = findings(tmp_path, **{setting: port})
    assert code == 1
    assert port in found[check]["detail"]
    assert setting in found[check]["advice"]


def test_without_git_or_a_collector_for_genai_spans_it_says_what_to_do(tmp_path: Path) -> None:
    code, found = findings(tmp_path, PATH=str(tmp_path), OTEL_SEMCONV_STABILITY_OPT_IN="gen_ai_latest_experimental")
    assert code == 1
    assert "2.38" in found["git"]["advice"]
    assert not found["GenAI spans"]["ok"]
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in found["GenAI spans"]["advice"]


def test_migrated_stores_are_current_behind_or_ahead(tmp_path: Path) -> None:
    assert finished("migrate", POINTSMAN_DATA=str(tmp_path))[0] == 0
    assert findings(tmp_path)[1]["workflow store"]["detail"] == "reachable, migrations current"
    with closing(sqlite3.connect(tmp_path / "workflow.db")) as store, store:
        store.execute("UPDATE context_version SET version_num = ?", (NEWER,))
    with closing(sqlite3.connect(tmp_path / "router.db")) as store, store:
        store.execute("DELETE FROM context_version")
    code, found = findings(tmp_path)
    assert code == 1
    assert found["workflow store"]["ok"]
    assert "newer version" in found["workflow store"]["detail"]
    assert found["router store"]["advice"] == "run `pointsman migrate`"


def test_a_database_that_is_away_is_told_by_store(tmp_path: Path) -> None:
    with taken_port() as port:
        away = port
    code, found = findings(tmp_path, POINTSMAN_DATABASE_URL=f"postgresql://nobody@127.0.0.1:{away}/none")
    assert code == 1
    assert "POINTSMAN_DATABASE_URL" in found["pipeline store"]["advice"]


def test_a_running_control_plane_is_asked_for_its_health_and_a_dead_one_is_named(tmp_path: Path) -> None:
    with running("up", "--port", "0", POINTSMAN_DATA=str(tmp_path), POINTSMAN_GATEWAY_PORT="0") as plane:
        plane.line_with(" up at ")
        found = eventually_now(lambda: all_is_well(tmp_path), 60)  # a busy service may be late for its health
        assert found["orchestrator service"]["detail"].endswith(": serving")
    with taken_port() as port:
        away = f"127.0.0.1:{port}"
    code, found = findings(tmp_path, POINTSMAN_SERVER=away)
    assert code == 1
    assert found["orchestrator service"]["detail"] == f"{away}: UNAVAILABLE"


@pytest.mark.parametrize("address", ["garbage", "postgresql://ann:s3cretword@host:port/x", "sqlite:////tmp/one.db"])
def test_an_address_that_is_none_is_named_by_its_setting_and_not_repeated(tmp_path: Path, address: str) -> None:
    settings = {"POINTSMAN_DATA": str(tmp_path), "POINTSMAN_DATABASE_URL": address}
    code, found = findings(tmp_path, POINTSMAN_DATABASE_URL=address)
    assert code == 1
    assert "POINTSMAN_DATABASE_URL" in found["router store"]["detail"]
    assert "s3cretword" not in json.dumps(found)
    code, printed = finished("migrate", **settings)
    assert (code, printed.count("\n")) == (2, 1)
    assert printed.startswith("pointsman: POINTSMAN_DATABASE_URL: ")
    assert "s3cretword" not in printed


def test_a_database_that_is_away_ends_a_migration_with_its_setting(tmp_path: Path) -> None:
    with taken_port() as port:
        away = f"postgresql://nobody@127.0.0.1:{port}/none"
    code, printed = finished("migrate", POINTSMAN_DATA=str(tmp_path), POINTSMAN_DATABASE_URL=away)
    assert (code, printed.count("\n")) == (1, 1), printed
    assert "POINTSMAN_DATABASE_URL cannot be opened" in printed


def test_a_data_directory_that_is_a_file_is_named_with_its_setting(tmp_path: Path) -> None:
    data = tmp_path / "file"
    data.write_text("")
    code, found = findings(data)
    assert code == 1
    assert "POINTSMAN_DATA" in found["data directory"]["advice"]
    for command in (("migrate",), ("up", "--port", "0"), ("route", "log"), ("demo",)):
        code, printed = finished(*command, POINTSMAN_DATA=str(data), POINTSMAN_GATEWAY_PORT="0")
        assert (code, printed.count("\n")) == (2, 1), printed
        assert printed.startswith(f"pointsman: POINTSMAN_DATA: {data}")


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "router.db").write_bytes(b"no database at all, but a file of some length\n" * 100)
    assert "router.db" in findings(tmp_path)[1]["router store"]["advice"]
    code, printed = finished("migrate", POINTSMAN_DATA=str(tmp_path))
    assert (code, printed.count("\n")) == (1, 1), printed
    assert "router.db cannot be opened" in printed
