"""What a contained command can see: system folders, the toolchains of its PATH, and what its spec names."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path

from pointsman.sandbox.spec import SandboxSpec

SYSTEM = (
    "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/snap/bin",
    "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
)  # fmt: skip
RESOLVER = Path("/etc/resolv.conf")
"""Without it programs ask the name server of their own machine, which is the supervisor's in a sandbox without network."""
TOOL_FOLDERS = frozenset({"bin", "sbin", "shims", ".bin"})
"""A folder of PATH with such a name belongs to the toolchain in its parent folder."""
PRIVATE = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".config",
    ".cargo/credentials", ".cargo/credentials.toml", ".claude", ".codex", ".gemini", ".local/share", ".local/state",
    ".mozilla", ".password-store", ".pointsman",
)  # fmt: skip
"""Places of a home folder that no toolchain opens, even if they are below its folder."""
WORLD_READABLE, WORLD_ENTERABLE = 0o004, 0o005


@dataclass(frozen=True, slots=True)
class View:
    """The files that a command sees, as existing absolute paths; the deepest path that covers a file decides."""

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    hidden: tuple[Path, ...]

    def shows(self, path: Path) -> bool:
        """Whether a path can be read: the deepest place that covers it is not hidden."""
        depths = [len(root.parts) for root in (*self.readable, *self.writable) if path.is_relative_to(root)]
        covered = [len(root.parts) for root in self.hidden if path.is_relative_to(root)]
        return max(depths, default=0) > max(covered, default=0)


class Shown(Enum):
    """How a path is shown inside."""

    READABLE = auto()
    WRITABLE = auto()
    HIDDEN = auto()


def mounts(view: View) -> list[tuple[Path, Shown]]:
    """The paths of a view, parents first, without those that their nearest parent shows in the same way already."""
    shown = dict.fromkeys(view.readable, Shown.READABLE)
    shown |= {path: Shown.HIDDEN for path in view.hidden if path == path.resolve()}
    shown |= dict.fromkeys(view.writable, Shown.WRITABLE)
    found = []
    for path, how in shown.items():
        around = next((shown[parent] for parent in path.parents if parent in shown), Shown.HIDDEN)
        if how is not around:
            found.append((path, how))
    return sorted(found, key=lambda entry: (len(entry[0].parts), str(entry[0])))


def named_view(spec: SandboxSpec) -> View:
    """Only what a spec names, for a sandbox that brings a system and toolchains of its own."""
    writable = _existing(spec.writable)
    return View(_existing(spec.readable), writable, _existing(spec.hidden))


def view_of(spec: SandboxSpec) -> View:
    """What a spec's command can see."""
    hidden = _existing([*spec.hidden, *_private_places(), *(() if spec.network else (RESOLVER,))])
    writable, readable = _existing(spec.writable), _existing(spec.readable)
    found = _existing(toolchains(_search_path(spec), hidden))
    tools = tuple(path for path in found if not any(path.is_relative_to(folder) for folder in writable))
    named = {*readable, *tools, *writable}
    still_hidden = tuple(path for path in hidden if path not in named)
    return View((*_system(), *tools, *readable), writable, (*still_hidden, *_secret_settings()))


def _search_path(spec: SandboxSpec) -> str:
    """The PATH of the command, and the folder of its program where that is given in full."""
    given = spec.environment.get("PATH", os.defpath)
    return f"{given}{os.pathsep}{Path(spec.command[0]).parent}" if spec.command else given


def toolchains(search_path: str, hidden: Sequence[Path]) -> tuple[Path, ...]:
    """The folders of a PATH with the toolchains that they belong to; never one that holds a hidden place."""
    found: dict[Path, None] = {}
    for entry in filter(None, search_path.split(os.pathsep)):
        folder = Path(entry)
        if not folder.is_absolute() or not _is_folder(folder) or _is_system(folder.resolve()):
            continue
        found[folder] = None
        for place in (folder.resolve(), *_link_targets(folder)):
            found.update(dict.fromkeys(_roots(place, hidden)))
    return tuple(found)


def _roots(folder: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """A folder of programs, the toolchain around it, and the interpreter that a virtual environment is made from."""
    yield folder
    toolchain = folder.parent
    if folder.name not in TOOL_FOLDERS or len(toolchain.parts) < 3 or _is_system(folder):
        return
    if toolchain == Path.home() / ".local":
        yield toolchain / "lib"
    elif not any(place.is_relative_to(toolchain) for place in (*hidden, Path.home())):
        yield toolchain
        yield from _interpreter(toolchain)


def _interpreter(toolchain: Path) -> Iterator[Path]:
    with suppress(OSError):
        for line in (toolchain / "pyvenv.cfg").read_text(errors="replace").splitlines():
            name, _, value = line.partition("=")
            home = Path(value.strip())
            if name.strip() == "home" and home.is_absolute() and _is_folder(home) and home.name in TOOL_FOLDERS:
                yield home.resolve().parent


def _link_targets(folder: Path) -> Iterator[Path]:
    """The folders of the programs that the links of a folder lead to."""
    with suppress(OSError):
        links = [Path(entry.path) for entry in os.scandir(folder) if entry.is_symlink()]
        targets = {target.parent for link in links if (target := link.resolve()).is_file()}
        yield from sorted(target for target in targets if not _is_system(target))


def _is_folder(path: Path) -> bool:
    """Whether this user can look into a folder."""
    try:
        return path.is_dir() and os.access(path, os.R_OK | os.X_OK)
    except OSError:
        return False


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(root) for root in SYSTEM)


def _private_places() -> Iterator[Path]:
    return (Path.home() / name for name in PRIVATE)


@cache
def _system() -> tuple[Path, ...]:
    """The folders of the system that are here, and where the resolver's settings really are."""
    return _existing([*map(Path, SYSTEM), RESOLVER])


@cache
def _secret_settings() -> tuple[Path, ...]:
    """What not everybody may read below /etc; a worker that runs as root could."""
    return tuple(_secrets_below(Path("/etc")))


def _secrets_below(folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if entry.is_symlink():
            continue
        if not _is_public(path, WORLD_ENTERABLE if entry.is_dir() else WORLD_READABLE):
            yield path
        elif entry.is_dir():
            yield from _secrets_below(path)


def _is_public(path: Path, bits: int) -> bool:
    return path.lstat().st_mode & bits == bits


def _existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those of the paths that exist, as they are given and as they resolve."""
    found: dict[Path, None] = {}
    for path in paths:
        with suppress(OSError):
            found.update(dict.fromkeys((path.absolute(), path.resolve(strict=True))))
    return tuple(found)
