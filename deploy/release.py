"""Make a release and try it; nothing is tagged or pushed: `make release`.

Checks that version and changelog agree, builds wheel and sdist into dist/release, installs each into a new environment
from the locks, runs the command line there, and prints the tag command and the notes.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist" / "release"
RELEASED = re.compile(r"^\d+\.\d+\.\d+$")
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
NEEDED = (
    "buf/validate/validate_pb2.py",
    "pointsman/cli/__init__.py",
    "pointsman/profiles/agents.toml",
    "pointsman/py.typed",
    "pointsman/services/gateway/openapi/openapi.json",
    "pointsman/services/router/__main__.py",
)
FORBIDDEN = re.compile(r"(^|/)(tests|\.venv[^/]*|__pycache__|\.git|data)/|\.(pyc|db|lock|log)$")
COMMANDS = (("--version",), ("--help",), ("route", "--json", "fix the failing test in src/parser.py"))


class NotReady(Exception):
    """Something stands in the way of a release."""


def section_of(changelog: str, version: str) -> str:
    """The notes of a version; those of what is not released yet for a development version."""
    title = version if RELEASED.match(version) else "Unreleased"
    found = re.search(rf"^## \[{re.escape(title)}\]([^\n]*)\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise NotReady(f"CHANGELOG.md has no section `## [{title}]` for version {version} of pyproject.toml")
    if RELEASED.match(version) and not re.fullmatch(r" - \d{4}-\d{2}-\d{2}", found[1]):
        raise NotReady(f"the section of {version} in CHANGELOG.md needs its date: `## [{version}] - 2026-01-31`")
    wrong = [kind for kind in re.findall(r"^### (.+)$", found[2], re.MULTILINE) if kind not in KINDS]
    if wrong or "\n- " not in found[2]:
        raise NotReady(f"the notes of {title} are lists under {', '.join(KINDS)}; not {', '.join(wrong) or 'empty'}")
    return found[2].strip()


def build() -> tuple[Path, Path]:
    """A wheel, and an sdist from which the same wheel can be built."""
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(DIST)], ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def contents(archive: Path) -> list[str]:
    """The files of a wheel, or of an sdist below its folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    with tarfile.open(archive) as opened:
        return [member.name.partition("/")[2] for member in opened if not member.isdir()]


def check_contents(archive: Path) -> str:
    """One line about an archive that has what it needs and nothing else."""
    names = contents(archive)
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise NotReady(f"{archive.name} lacks {', '.join(missing)}")
    strays = [name for name in names if FORBIDDEN.search(name)]
    if strays:
        raise NotReady(f"{archive.name} has what it should not: {', '.join(strays[:5])}")
    tops = sorted({name.partition("/")[0] for name in names})
    return f"{archive.name}: {len(names)} files, {archive.stat().st_size // 1024} KiB: {', '.join(tops)}"


def try_out(archive: Path, version: str) -> None:
    """Install an archive into a new environment from the locks and use it, away from the checkout."""
    with tempfile.TemporaryDirectory(prefix="pointsman-release-") as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        pip = [str(folder / "venv/bin/pip"), "install", "-q", "--disable-pip-version-check"]
        _run([*pip, "--require-hashes", "-r", str(ROOT / "requirements.lock")], folder)
        if archive.suffix != ".whl":
            _run([*pip, "--require-hashes", "-r", str(ROOT / "requirements-build.lock")], folder)
        _run([*pip, "--no-deps", "--no-build-isolation", str(archive)], folder)
        for command in COMMANDS:
            said = _run([str(folder / "venv/bin/pointsman"), *command], folder)
            if command == ("--version",) and said.strip() != version:
                raise NotReady(
                    f"{archive.name} says that it is {said.strip()}, and pyproject.toml that it is {version}"
                )
        print(f"{archive.name}: installed from the lock; {', '.join(command[0] for command in COMMANDS)} work")


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NotReady(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Everything, up to the command that tags it."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    notes = section_of((ROOT / "CHANGELOG.md").read_text(), version)
    for old in DIST.glob("pointsman-*"):
        old.unlink()
    for archive in build():
        print(check_contents(archive))
        try_out(archive, version)
    (DIST / "notes.md").write_text(notes + "\n")
    print(f"the notes are in {(DIST / 'notes.md').relative_to(ROOT)}")
    if RELEASED.match(version):
        print(f"git tag --annotate v{version} --file dist/release/notes.md --cleanup=whitespace")
    else:
        print(f"{version} is a development version: set `version` and date its section of CHANGELOG.md to release it")


if __name__ == "__main__":
    try:
        main()
    except NotReady as reason:
        sys.exit(str(reason))
