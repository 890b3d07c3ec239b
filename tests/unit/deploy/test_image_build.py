"""The image's build, without an engine: the Containerfile's own steps in a folder, and what comes out started as the image would.

`make image` runs all of it: dependencies from the locks, Debian's Python, the image's user. The default run takes the
dependencies from the environment of the tests, because installing them takes a minute.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.deploy.cluster import ROOT
from tests.unit.deploy.test_image import IMAGES, instructions

ASKED_FOR = "POINTSMAN_BUILD_IMAGE"
WHOLE = bool(os.environ.get(ASKED_FOR))
pytestmark = pytest.mark.xdist_group("image")
USER = 65532


@dataclass(slots=True)
class Build:
    """A folder that stands for the image's root."""

    root: Path
    python: str
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def app(self) -> Path:
        """What the last stage copies."""
        return self.root / "app"

    @property
    def source(self) -> Path:
        """Where the first stage works."""
        return self.root / "source"

    def perform(self, word: str, rest: str) -> None:
        """One instruction of the first stage."""
        if word == "ENV":
            self.environment |= dict(pair.split("=", 1) for pair in rest.split())
        elif word == "COPY":
            *names, target = rest.split()
            for name in names:
                self._copy(name, self.source / target)
        elif word == "RUN" and (WHOLE or "-r requirements" not in rest):
            self._run(rest)

    def _copy(self, name: str, target: Path) -> None:
        assert f"!{name}" in (ROOT / "deploy" / "Containerfile.dockerignore").read_text().split(), f"{name} is ignored"
        origin = ROOT / name
        if origin.is_dir():
            shutil.copytree(origin, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, target)

    def _run(self, script: str) -> None:
        words = script.replace("/app", str(self.app)).replace("pip install", f"{self.python} -m pip install -q")
        words = words.replace("python -m compileall", f"{self.python} -m compileall")
        subprocess.run(["sh", "-ec", words], cwd=self.source, env={**os.environ, **self.environment}, check=True)

    def digest(self) -> str:
        """Of every name, date and byte below /app."""
        digest = hashlib.sha256()
        for path in sorted(self.app.rglob("*")):
            digest.update(f"{path.relative_to(self.app)} {path.lstat().st_mtime_ns}\0".encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
        return digest.hexdigest()


def built(root: Path, python: str) -> Build:
    """The first stage, from the Containerfile."""
    build = Build(root, python)
    build.source.mkdir(parents=True)
    stages = [place for place, (word, _) in enumerate(instructions(IMAGES[0])) if word == "FROM"]
    for word, rest in instructions(IMAGES[0])[stages[0] : stages[1]]:
        build.perform(word, rest)
    return build


@pytest.fixture(scope="module")
def image() -> Iterator[Build]:
    """The first stage, in a folder that every user may look into."""
    root = Path(tempfile.mkdtemp(prefix="image-"))
    root.chmod(0o755)
    python = sys.executable
    if WHOLE:
        subprocess.run([sys.executable, "-m", "venv", str(root / "builder")], check=True)
        python = str(root / "builder" / "bin" / "python")
    yield built(root / "one", python)
    shutil.rmtree(root)


def last_stage(build: Build) -> tuple[list[str], dict[str, str]]:
    """Command and environment of the image, with what is there instead of the base."""
    found = instructions(IMAGES[0])
    (entry,) = [rest for word, rest in found if word == "ENTRYPOINT"]
    stage = max(place for place, (word, _) in enumerate(found) if word == "FROM")
    pairs = [pair for word, rest in found[stage:] if word == "ENV" for pair in rest.split()]
    environment = dict(pair.replace("/app", str(build.app)).split("=", 1) for pair in pairs)
    interpreter, *arguments = json.loads(entry)
    if not WHOLE:
        environment["PYTHONPATH"] += os.pathsep + os.pathsep.join(path for path in sys.path if "site-packages" in path)
        return [sys.executable, *arguments], environment
    as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []
    return [*as_user, interpreter, *arguments], environment


def started(build: Build, *arguments: str, **settings: str) -> subprocess.Popen[str]:
    """The image's command with these arguments."""
    command, environment = last_stage(build)
    every: Mapping[str, str] = {"PATH": "/usr/bin:/bin", **environment, **settings}
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, *arguments], env=every, cwd="/", stdout=pipe, stderr=pipe, text=True)


@pytest.mark.timeout(600)
def test_what_the_image_holds_starts_with_nothing_but_its_own_files_and_writes_to_none_of_them(image: Build) -> None:
    before = image.digest()
    helped = started(image, "--help")
    output, errors = helped.communicate()
    assert (helped.returncode, "serve" in output) == (0, True), errors
    with tempfile.TemporaryDirectory(prefix="data-") as data:
        Path(data).chmod(0o777)
        served = started(image, "serve", "router", "--port", "0", POINTSMAN_DATA=data)
        assert served.stdout is not None
        said = served.stdout.readline()
        served.terminate()
        _, errors = served.communicate()
        assert said.startswith("router is up at"), errors
        assert served.returncode == 0, errors
        assert (Path(data) / "router.db").exists()
    assert image.digest() == before


@pytest.mark.timeout(600)
def test_the_same_sources_make_the_same_files(image: Build) -> None:
    before = image.digest()
    shutil.rmtree(image.app)
    shutil.rmtree(image.source)
    assert built(image.root, image.python).digest() == before


def test_a_file_that_the_build_context_leaves_out_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="tests is ignored"):
        Build(tmp_path, sys.executable).perform("COPY", "tests tests")
