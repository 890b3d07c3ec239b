"""What the scripts of backup and restore hand to PostgreSQL's tools: the URL's parts, and nothing of it in arguments."""

import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.helpers.limits import scaled
from tests.unit.deploy.cluster import ROOT

FAKE = """#!/bin/sh
printf '%s\\n' "$@" >"$SEEN/arguments"
ls -l "$PGSERVICEFILE" | cut -c1-10 >"$SEEN/mode"
cp "$PGSERVICEFILE" "$SEEN/service"
printf '%s' "$PGSERVICEFILE" >"$SEEN/path"
"""
URLS = (
    "postgresql://ann:s3cret@db.example:5433/pointsman?sslmode=verify-full",
    "postgresql://ann:s3cret%40%2F%3A%25%20x@db.example/point%C3%A4",
    "postgres://ann:s3cret@[::1]:5433,second,third:1/p?sslmode=require&connect_timeout=5",
    "postgresql://ann@/p?host=/run/postgres%20ql&password=s3cret",
    "postgresql://ann:s3cret?=x@db.example",
    "postgresql://db.example",
)


def run(script: str, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A script with tools that only write down what they are given."""
    binaries, seen = folder / "bin", folder / "seen"
    for made in (binaries, seen):
        made.mkdir()
    for name in ("pg_dump", "pg_restore"):
        (binaries / name).write_text(FAKE)
        (binaries / name).chmod(0o755)
    environment = {
        "PATH": f"{binaries}:{os.environ['PATH']}", "SEEN": str(seen), "POINTSMAN_DATABASE_URL": url,
    }  # fmt: skip
    command = [str(ROOT / "deploy" / script), str(folder / "copy")]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=scaled(50))


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("script", ["backup.sh", "restore.sh"])
def test_the_url_of_the_database_is_in_no_argument_and_means_what_it_meant(
    script: str, url: str, tmp_path: Path
) -> None:
    done = run(script, url, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    seen = tmp_path / "seen"
    arguments = (seen / "arguments").read_text()
    assert "service=pointsman" in arguments
    assert not [secret for secret in ("s3cret", "postgresql:", "db.example", "ann") if secret in arguments]
    lines = (seen / "service").read_text().splitlines()
    assert lines[0] == "[pointsman]"
    meant = psycopg.conninfo.conninfo_to_dict(url)
    assert dict(line.split("=", 1) for line in lines[1:]) == {name: str(value) for name, value in meant.items()}
    assert (seen / "mode").read_text().strip() == "-rw-------"
    assert not Path((seen / "path").read_text()).exists(), "it is gone afterwards"


def test_a_url_that_is_none_of_postgresql_is_refused_by_its_name(tmp_path: Path) -> None:
    done = run("backup.sh", "mysql://ann:s3cret@db.example/p", tmp_path)
    assert done.returncode == 1
    assert "POINTSMAN_DATABASE_URL" in done.stderr
    assert "s3cret" not in done.stderr
