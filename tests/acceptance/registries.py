"""Sources of a package, fetched by the package manager of its ecosystem and laid out as its repository has them."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

FETCH_SECONDS = 600.0
WRITABLE_FILE, WRITABLE_FOLDER = 0o644, 0o755


class Unavailable(Exception):
    """A package or a toolchain that cannot be had on this machine."""


def _ran(command: Sequence[str], folder: Path, **variables: str) -> str:
    if shutil.which(command[0]) is None:
        raise Unavailable(f"{command[0]} is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True,
            timeout=FETCH_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Unavailable(str(error)) from None
    if done.returncode:
        raise Unavailable(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def _copied(source: Path, target: Path) -> Path:
    """A copy that can be written to; registries keep theirs read-only."""
    shutil.copytree(source, target)
    for folder, _, files in os.walk(target):
        Path(folder).chmod(WRITABLE_FOLDER)
        for name in files:
            path = Path(folder) / name
            path.chmod(WRITABLE_FOLDER if path.stat().st_mode & 0o100 else WRITABLE_FILE)
    return target


def _unpacked(archive: Path, target: Path) -> Path:
    """The only folder of an archive, under another name."""
    place = target.with_name(f"{target.name}-archive")
    shutil.unpack_archive(archive, place, filter="data")
    (only,) = place.iterdir()
    return Path(shutil.move(only, target))


def from_pypi(package: str, cache: Path, target: Path) -> Path:
    """The source distribution of a Python package."""
    name, _, version = package.partition("==")
    place = cache / "pypi" / package
    if not list(place.glob("*.tar.gz")):
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name, f"{name}=={version}"]
        _ran([*pip, "-d", str(place)], place)
    return _unpacked(next(place.glob("*.tar.gz")), target)


def from_npm(package: str, cache: Path, target: Path) -> Path:
    """What npm packs of a package."""
    place = cache / "npm" / package.replace("/", "+")
    if not list(place.glob("*.tgz")):
        _ran(["npm", "pack", "--silent", package], place)
    return _unpacked(next(place.glob("*.tgz")), target)


def from_go(package: str, cache: Path, target: Path) -> Path:
    """A Go module, as the module cache has it."""
    said = _ran(["go", "mod", "download", "-json", package], cache / "go", GOMODCACHE=str(cache / "go" / "mod"))
    return _copied(Path(json.loads(said)["Dir"]), target)


def from_crates(package: str, cache: Path, target: Path) -> Path:
    """A crate, as Cargo unpacks it."""
    name, _, version = package.partition("@")
    place, home = cache / "crates" / package, cache / "crates" / "home"
    (place / "src").mkdir(parents=True, exist_ok=True)
    (place / "src" / "lib.rs").write_text("")
    head = '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n'
    (place / "Cargo.toml").write_text(f'{head}{name} = "={version}"\n')
    _ran(["cargo", "fetch", "-q"], place, CARGO_HOME=str(home))
    source = next((home / "registry" / "src").glob(f"*/{name}-{version}"))
    copied = _copied(source, target)
    for left in (".cargo-ok", ".cargo_vcs_info.json", "Cargo.toml.orig"):
        (copied / left).unlink(missing_ok=True)
    return copied


def from_maven(package: str, cache: Path, target: Path) -> Path:
    """The sources and the test sources of a Java library, laid out as Maven has them, with its pom."""
    group, name, version = package.split(":")
    place, local = cache / "maven", cache / "maven" / "repository"
    home = local / group.replace(".", "/") / name / version
    for classifier, folder in (("sources", "src/main"), ("test-sources", "src/test")):
        archive = home / f"{name}-{version}-{classifier}.jar"
        if not archive.exists():
            get = ["mvn", "-q", "-B", f"-Dmaven.repo.local={local}", "dependency:get", "-Dtransitive=false"]
            _ran([*get, f"-Dartifact={package}:jar:{classifier}"], place)
        _lay_out(archive, target, folder, f"META-INF/maven/{group}/{name}/pom.xml")
    return target


def _lay_out(archive: Path, target: Path, folder: str, pom: str) -> None:
    """Java files go below `java`, others below `resources`; of the archive's own files only the pom counts."""
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            if entry.is_dir() or (entry.filename.startswith("META-INF/") and entry.filename != pom):
                continue
            kind = "java" if entry.filename.endswith(".java") else "resources"
            path = target / "pom.xml" if entry.filename == pom else target / folder / kind / entry.filename
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(opened.read(entry))


FETCH: dict[str, Callable[[str, Path, Path], Path]] = {
    "pypi": from_pypi,
    "npm": from_npm,
    "go": from_go,
    "crates": from_crates,
    "maven": from_maven,
}
