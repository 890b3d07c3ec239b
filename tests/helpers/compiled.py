"""The router's compiled form as the wheel has it, built once for each state of the sources, and why it cannot be had."""

import hashlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "compiled"
SWITCH = "HATCH_BUILD_HOOK_ENABLE_CUSTOM"


def missing() -> str:
    """What compiling needs and this machine lacks; nothing, where it can be done."""
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler})"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return "" if header.exists() else f"there are no headers of this Python ({header})"


def build_wheel(folder: Path, *, compiled: bool) -> Path:
    """The wheel of this checkout, with or without the compiled modules."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    environment = {**os.environ, SWITCH: str(compiled).lower()}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=sys.stderr)
    (wheel,) = folder.glob("*.whl")
    return wheel


def compiled_tree() -> Path:
    """A folder with what the compiled wheel holds."""
    tree = CACHE / _digest()
    if not tree.exists():
        print("compiling the router (once for these sources, about a minute)", file=sys.stderr, flush=True)
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE.mkdir(parents=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            with zipfile.ZipFile(build_wheel(Path(folder), compiled=True)) as wheel:
                wheel.extractall(Path(folder) / "tree")
            (Path(folder) / "tree").rename(tree)
    return tree


def python_of(tree: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment of a Python that takes the product from a tree, and the tests from this checkout."""
    return [sys.executable, "-P", *arguments], {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{ROOT}"}


def _digest() -> str:
    """Of every file that goes into the wheel, and of what compiles it."""
    digest = hashlib.sha256(f"{sys.version} {importlib.metadata.version('mypy')}".encode())
    folders = [path for name in ("pointsman", "services", "buf") for path in (ROOT / name).rglob("*")]
    for path in sorted([ROOT / "pyproject.toml", ROOT / "hatch_build.py", *folders]):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
