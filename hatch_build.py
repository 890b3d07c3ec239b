"""The wheel's compiled form: the modules that every routing decision runs through, made into C by mypyc.

Off unless asked for (HATCH_BUILD_HOOK_ENABLE_CUSTOM=true), and never for an editable install; nothing is written into the tree,
so that no checkout can run what an older state of it was compiled to. The sources go into the wheel all the same.
"""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from mypyc.build import mypycify
from setuptools import Distribution

DOMAIN = "pointsman/services/router/domain"


class CompiledRouter(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel, which is then one for this Python and this system."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what goes into the wheel."""
        if version == "editable":
            return
        self.made = tempfile.TemporaryDirectory(prefix="compiled-")
        folder = Path(self.made.name)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for built in compiled(Path(self.root), self.config["modules"], folder):
            build_data["force_include"][str(built)] = str(built.relative_to(folder / "lib"))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Leave nothing behind."""
        if version != "editable":
            self.made.cleanup()


def compiled(root: Path, modules: list[str], folder: Path) -> list[Path]:
    """The modules of the router's domain as extension modules below a folder's lib, in places like those of their sources."""
    with contextlib.chdir(root):
        sources = [f"{DOMAIN}/{module}.py" for module in modules]
        options = ["--config-file", "pyproject.toml", "--cache-dir", str(folder / "cache")]
        extensions = mypycify([*options, *sources], opt_level="2", debug_level="0", target_dir=str(folder / "c"))
        build = Distribution({"ext_modules": extensions}).get_command_obj("build_ext")
        build.build_lib, build.build_temp = str(folder / "lib"), str(folder / "objects")
        build.ensure_finalized()
        build.run()
    return sorted(path for path in (folder / "lib").rglob("*") if path.is_file())
