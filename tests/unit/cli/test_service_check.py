"""`pointsman doctor` in a repository: each service of its project file is started, and what does not start is named."""

from pathlib import Path

from pointsman.cli.session.service_check import try_services
from tests.unit.worker.repositories import repository

PROJECT = """
[workspace]
services.web = "python3 -I -m http.server --bind 127.0.0.1 {port}"
services.cache = "no-such-server --port {port}"
"""


async def test_what_starts_and_what_does_not_is_told_by_name(tmp_path: Path) -> None:
    await repository(tmp_path / "user", {"pointsman.toml": PROJECT})
    found = await try_services(tmp_path / "user")
    assert found["web"] == ""
    assert "cannot start the service cache: no-such-server" in found["cache"]
    assert "[workspace] services" in found["cache"]


async def test_where_no_project_file_is_nothing_is_started(tmp_path: Path) -> None:
    assert await try_services(tmp_path) == {}
