"""Counts signals over true changes: consecutive releases of well-known packages, from the indexes of their tools.

`python -m tests.robustness.cheats.calibration FOLDER` downloads into a folder, once, and prints how many changed files and
releases each signal fires on. A signal that fires on more than 5 % of changed files must not ask.
"""

import argparse
import json
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from pointsman.proof.protection.rules import default_table
from pointsman.proof.protection.rust_tests import split_source
from pointsman.proof.signals import SOURCES, Edit, rules, scan

LIMIT = 0.05


@dataclass
class Counts:
    """How often each signal fired."""

    files: Counter[str] = field(default_factory=Counter)
    releases: Counter[str] = field(default_factory=Counter)
    all_files: int = 0
    all_releases: int = 0
    asked_releases: int = 0


def main() -> None:
    """Downloads what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    counts = Counts()
    for old, new in _pairs(folder):
        _count(counts, old, new)
    print(f"{counts.all_releases} pairs of releases, {counts.all_files} changed files that are not protected.\n")
    print("| signal | asks | changed files | releases |\n|---|---|---|---|")
    asking = {rule.name: rule.asks for rule in rules()} | {"repeats values of the tests": True}
    for name, asks in asking.items():
        share = counts.files[name] / max(counts.all_files, 1)
        over = " **too often**" if asks and share > LIMIT else ""
        shown = f"{counts.files[name]} ({100 * share:.1f} %){over}"
        print(f"| {name} | {'yes' if asks else 'no'} | {shown} | {counts.releases[name]} |")
    print(f"\nAt least one signal asks in {counts.asked_releases} of {counts.all_releases} whole releases.")


def _pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    wanted = tomllib.loads((Path(__file__).parent / "releases.toml").read_text())
    fetch = {"pypi": _pypi, "npm": _npm, "go": _go, "crates": _crate}
    for index, packages in wanted.items():
        for name, versions in packages.items():
            places = []
            for version in versions:
                place = folder / index / name.replace("/", "_") / version
                try:
                    if not place.exists():
                        fetch[index](name, version, place)
                    places.append(place)
                except (subprocess.CalledProcessError, OSError, StopIteration) as error:
                    print(f"LEFT OUT: {name} {version}: {error}")
            yield from pairwise(places)


def _run(command: Sequence[str], folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def _unpack(archive: Path, place: Path) -> None:
    unpacked = archive.parent / "unpacked"
    with tarfile.open(archive) as file:
        file.extractall(unpacked, filter="data")
    shutil.move(next(unpacked.iterdir()), place)
    shutil.rmtree(archive.parent)


def _pypi(name: str, version: str, place: Path) -> None:
    work = place.with_name(f"{version}.work")
    _run(["pip", "download", "-q", "--no-deps", "--only-binary", ":all:", f"{name}=={version}"], work)
    with zipfile.ZipFile(next(work.glob("*.whl"))) as file:
        file.extractall(place)
    shutil.rmtree(work)


def _npm(name: str, version: str, place: Path) -> None:
    work = place.with_name(f"{version}.work")
    _run(["npm", "pack", "--silent", f"{name}@{version}"], work)
    _unpack(next(work.glob("*.tgz")), place)


def _go(name: str, version: str, place: Path) -> None:
    work = place.with_name(f"{version}.work")
    found = json.loads(_run(["go", "mod", "download", "-json", f"{name}@{version}"], work))
    shutil.copytree(found["Dir"], place, copy_function=shutil.copyfile)
    work.rmdir()


def _crate(name: str, version: str, place: Path) -> None:
    work = place.with_name(f"{version}.work")
    (work / "src").mkdir(parents=True, exist_ok=True)
    (work / "src/lib.rs").write_text("")
    (work / "Cargo.toml").write_text(
        f'[package]\nname = "x"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n{name} = "={version}"\n[workspace]\n'
    )
    _run(["cargo", "vendor", "-q", "vendor"], work)
    shutil.move(work / "vendor" / name, place)
    shutil.rmtree(work)


def _count(counts: Counts, old: Path, new: Path) -> None:
    """Counts the signals of one pair, file by file."""
    fired: set[tuple[str, bool]] = set()
    for path, edit in _edits(old, new):
        counts.all_files += 1
        found = scan({path: edit})
        counts.files.update({signal.name for signal in found})
        fired |= {(signal.name, signal.asks) for signal in found}
    counts.releases.update({name for name, _ in fired})
    counts.all_releases += 1
    counts.asked_releases += any(asks for _, asks in fired)


def _edits(old: Path, new: Path) -> Iterator[tuple[str, Edit]]:
    table = default_table()
    manifests = ("go.mod", "Cargo.toml", "package.json", "pyproject.toml", "tsconfig.json")
    for path in sorted(
        path for path in new.rglob("*") if path.is_file() and path.name.endswith((*SOURCES, *manifests))
    ):
        name = path.relative_to(new).as_posix()
        found = table.protection(name)
        if (found is not None and found.manifest is None) or name.startswith(("docs/", "examples/")):
            continue
        before, after = _text(old / name), _text(path)
        if before != after and before:
            yield name, Edit(*_changed(before, after), before=before)


def _text(path: Path) -> str:
    text = path.read_text(errors="replace") if path.is_file() else ""
    return split_source(text).code if path.suffix == ".rs" else text


def _changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """Lines that came and went, by how often each stands there; enough for counting, and quick."""
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    return list((new - old).elements()), list((old - new).elements())


if __name__ == "__main__":
    main()
