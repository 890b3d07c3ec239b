"""What is installed is locked, hashed, known by licence, and the lists are up to date."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.scripts import script

ROOT = Path(__file__).resolve().parents[3]
PYTHON, OTHERS = 0, 1
ACCEPTED = re.compile(
    r"(MIT|MIT-0|MIT-CMU|Apache-2\.0|BSD-[23]-Clause|0BSD|ISC|PSF-2\.0|MPL-2\.0|EPL-2\.0|LGPL-3\.0-only|PostgreSQL)"
)
"""Permissive ones, and weak copyleft of packages that are used as they are."""


@pytest.fixture(scope="module")
def supply() -> Iterator[ModuleType]:
    """The script."""
    with script("deploy/supply.py") as module:
        yield module


def test_every_locked_package_has_hashes_and_stands_in_the_list_of_licences(supply: ModuleType) -> None:
    packages = {package for lock in supply.LOCKS.values() for package in supply.locked(lock)}
    beside = ("tests/acceptance/requirements.lock", "tests/bench/grpc_servers/requirements.lock")
    assert all(package.hashes for lock in beside for package in {*packages, *supply.locked(lock)})
    assert {(package.name, package.version) for package in packages} == listed(supply, PYTHON)


def test_every_dependency_of_a_client_and_every_file_and_image_of_others_stands_there_too(supply: ModuleType) -> None:
    found = listed(supply, OTHERS)
    assert found == {(other.name, other.version) for other in supply.others()}
    names = {name for name, _ in found}
    package = json.loads((ROOT / "clients/typescript/package.json").read_text())
    assert {*package["dependencies"], *package["devDependencies"]} <= names
    wanted = re.findall(r"^\t(\S+/\S+) v", (ROOT / "clients/go/go.mod").read_text(), re.MULTILINE)
    assert {*wanted} <= names
    artifacts = re.findall(r"<artifactId>([^<]+)<", (ROOT / "clients/java/pom.xml").read_text())
    assert {*artifacts} - {"pointsman-agent"} == {name.partition(":")[2] for name in names if ":" in name}
    assert {"axe-core", "buf/validate/validate.proto", "envoyproxy/envoy", "postgres"} <= names
    assert (ROOT / "tests/e2e/vendor/axe-core.LICENSE").exists(), "MPL-2.0 asks for its text beside the file"


def listed(supply: ModuleType, part: int) -> set[tuple[str, str]]:
    """Names and versions in one of the page's tables."""
    table = supply.PAGE.read_text().split("\n## ")[part]
    return set(re.findall(r"^\| (\S+) \| (\S+) \|", table, re.MULTILINE)) - {
        ("package", "version"),
        ("what", "version"),
    }


def test_no_licence_in_the_list_forbids_our_use(supply: ModuleType) -> None:
    text = supply.PAGE.read_text()
    rows = re.findall(r"^\| \S+ \| \S+ \| [^|]+ \| (?!licence)([^|-].*?) \|$", text, re.MULTILINE)
    assert len(rows) > 100
    parts = {part for row in rows for part in re.split(r" (?:AND|OR|WITH) |[()]", row) if part}
    assert {part for part in parts if not ACCEPTED.fullmatch(part)} == set()


def test_the_bill_of_materials_names_each_installed_package_with_version_licence_and_hashes(supply: ModuleType) -> None:
    bill = json.loads(supply.sbom())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    names = {(part["name"], part["version"]) for part in bill["components"]}
    packages = {(package.name, package.version) for package in supply.locked("requirements.lock")}
    assert names == {*packages, (supply.contract().name, supply.contract().version)}, "and the file we hold code from"
    assert all(part["hashes"] and part["licenses"][0]["expression"] for part in bill["components"])


def test_an_install_from_a_lock_refuses_a_package_whose_hash_is_another(tmp_path: Path) -> None:
    (tmp_path / "evil-1.0.tar.gz").write_bytes(b"not what was locked")
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"evil==1.0 --hash=sha256:{'0' * 64}\n")
    options = [
        "--no-index",
        "--no-deps",
        "--require-hashes",
        "--disable-pip-version-check",
        "--find-links",
        str(tmp_path),
    ]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(tmp_path / "out"), "-r", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_every_install_of_the_makefile_and_the_image_asks_for_hashes() -> None:
    for name in ("Makefile", "deploy/Containerfile"):
        installs = re.findall(r"^.*(?:pip install|\$\(PIP\)).*$", (ROOT / name).read_text(), re.MULTILINE)
        commands = [line for line in installs if not line.startswith("PIP :=")]
        assert commands
        for line in commands:
            ours = "--no-deps" in line and "--no-build-isolation" in line and " -r " not in line
            assert ours or "--require-hashes" in line, (name, line)
