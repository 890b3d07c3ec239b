"""One contained command tries everything, at every level that is here; each defence that is switched off lets some through."""

import asyncio
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.sandbox import Level, bubblewrap, landlock, launch, run, seccomp
from pointsman.sandbox.spec import SandboxSpec
from pointsman.sandbox.visibility import View
from tests.helpers.eventually import eventually
from tests.helpers.levels import levels_here
from tests.scenarios.attacks.world import World, attacked_world

CONFINING = [level for level in levels_here() if Level.NONE < level < Level.CONTAINER]
BY_LOOPBACK = {"connect to loopback", "send a datagram to loopback"}
BEYOND_LANDLOCK = {
    "read the worker's arguments", "change the mode of a credential", "change the times of a credential",
}  # fmt: skip
"""What Landlock has no rule for; docs/security.md says so."""
POWERS = {
    "mount", "make a device", "raise its priority", "read passwords of the system", "type into a terminal",
    "make the system writable", "name the program for core dumps", "write to the kernel's log", "uncover a hidden file",
    "join a namespace of the worker",
}  # fmt: skip
"""What only root can do anywhere."""
BY_FILE_SYSTEM = {"set an attribute of a credential"}
"""What some file systems do not have."""
NEVER = {"inherit a descriptor", "inherit a variable", "find a key of the session"}
"""What no level lets through, because it is not the level that refuses it."""
WAIT_AT = """
import pathlib, socket, sys, threading
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
pathlib.Path("waits").touch()
threading.Event().wait()
"""
pytestmark = pytest.mark.skipif(not CONFINING, reason="nothing is isolated here")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with attacked_world(tmp_path) as made:
        yield made


@pytest.mark.parametrize("level", CONFINING)
async def test_a_proof_reaches_nothing(level: Level, world: World) -> None:
    allowed = BEYOND_LANDLOCK if level is Level.LANDLOCK else set()
    assert await world.attacked(level, network=False) == allowed


@pytest.mark.parametrize("level", CONFINING)
async def test_an_agent_reaches_loopback_and_nothing_else(level: Level, world: World) -> None:
    allowed = BEYOND_LANDLOCK if level is Level.LANDLOCK else set()
    assert await world.attacked(level, network=True) == allowed | BY_LOOPBACK


@pytest.mark.parametrize("level", [Level.NONE, *CONFINING])
async def test_a_proof_cannot_wait_where_a_crashed_control_plane_listened(level: Level, world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as crashed:
        port = crashed.getsockname()[1]
    spec = world.spec(level, network=False)
    waiting = asyncio.create_task(run(replace(spec, command=(spec.command[0], "-I", "-S", "-c", WAIT_AT, str(port)))))

    async def tried() -> bool:
        return (world.folder / "waits").exists() or waiting.done()

    await eventually(tried)
    with socket.socket() as client:
        caught = client.connect_ex(("127.0.0.1", port)) == 0
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert caught == (level is Level.NONE)


async def test_without_isolation_every_attack_works(world: World) -> None:
    powers = set() if os.geteuid() == 0 else POWERS
    assert await world.attacked(Level.NONE, network=True) == set(world.attacks) - NEVER - powers


def opened(view: View, network: bool, **changes: tuple[Path, ...]) -> int:
    return RULESET(replace(view, hidden=(), **changes), network=network)


RULESET, OPTIONS = landlock.ruleset, bubblewrap.options
ROOT = (Path("/"),)
TEMPORARY = tempfile.gettempdir()
NAMESPACES_BUT_PROCESSES = ["--unshare-user-try", "--unshare-ipc", "--unshare-net", "--unshare-uts"]
Defence = Callable[[pytest.MonkeyPatch], None]


def reading_is_confined(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(landlock, "ruleset", lambda view, network: opened(view, network, readable=ROOT))


def writing_is_confined(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(landlock, "ruleset", lambda view, network: opened(view, network, writable=ROOT))


def system_calls_are_filtered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(seccomp, "is_supported", lambda: False)


def connections_are_refused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(seccomp, "is_supported", lambda: False)
    patch.setattr(landlock, "TCP_BIND_AND_CONNECT", 0)


def signals_and_names_stay_inside(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(seccomp, "is_supported", lambda: False)
    patch.setattr(landlock, "SOCKETS_AND_SIGNALS", 0)


def root_loses_its_powers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(launch, "is_root", lambda: False)


@pytest.mark.parametrize(
    ("defence", "let_through"),
    [
        (reading_is_confined, {"read a credential", "list the data directory", "read another assignment",
                               "read the clone", "read what was left in /dev/shm", "read what was left in /tmp"}),
        (writing_is_confined, {"make a file in the data directory", "overwrite the clone", "plant a hook",
                               "remove another assignment", "leave something in /dev/shm", "write to a terminal"}),
        (system_calls_are_filtered, {"connect to the control plane", "connect to the ssh-agent",
                                     "connect to the docker.sock", "connect to the session bus",
                                     "send a datagram to loopback", "attach shared memory of System V",
                                     "set limits of the worker", "slow the worker down",
                                     "say where the worker runs", "change how the worker is scheduled",
                                     "put the worker's reading and writing off", *BY_FILE_SYSTEM}),
        (connections_are_refused, {"connect to loopback"}),
        (signals_and_names_stay_inside, {"kill the worker", "connect to an abstract socket"}),
    ],
)  # fmt: skip
@pytest.mark.skipif(Level.LANDLOCK not in CONFINING, reason="there is no Landlock here")
async def test_at_landlock_each_defence_is_needed(
    defence: Defence, let_through: set[str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    defence(monkeypatch)
    not_here = BY_FILE_SYSTEM - set(world.attacks)
    assert let_through - not_here <= await world.attacked(Level.LANDLOCK, network=False)


@pytest.mark.skipif(Level.LANDLOCK not in CONFINING or os.geteuid() != 0, reason="needs Landlock and root")
async def test_at_landlock_root_would_keep_its_powers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    root_loses_its_powers(monkeypatch)
    assert "raise its priority" in await world.attacked(Level.LANDLOCK, network=False)


def edited(change: Callable[[list[str]], list[str]]) -> Callable[[SandboxSpec, View], list[str]]:
    return lambda spec, view: change(OPTIONS(spec, view))


def without(given: list[str], *words: str) -> list[str]:
    """The options without some that follow each other."""
    found = next((at for at in range(len(given)) if given[at : at + len(words)] == [*words]), None)
    return given if found is None else given[:found] + given[found + len(words) :]


def showing(given: list[str], bind: str, place: str, covered_by: str) -> list[str]:
    """The options with a real folder where the sandbox has one of its own."""
    return [bind, place, place, *without(given, covered_by, place)]


@pytest.mark.parametrize(
    ("change", "let_through"),
    [
        (lambda given: showing(given, "--ro-bind", TEMPORARY, "--tmpfs"),
         {"read a credential", "list the data directory", "read another assignment", "connect to the ssh-agent",
          "connect to the docker.sock", "connect to the session bus", "connect to the control plane"}),
        (lambda given: showing(given, "--bind", TEMPORARY, "--tmpfs"),
         {"make a file in the data directory", "plant a hook", "change the mode of a credential",
          "change the times of a credential", "remove another assignment", "read what was left in /tmp"}),
        (lambda given: [*given, "--share-net"], BY_LOOPBACK),
        (lambda given: [*NAMESPACES_BUT_PROCESSES, *showing(without(given, "--unshare-all"), "--ro-bind", "/proc", "--proc")],
         {"read the worker's arguments"}),
        (lambda given: showing(given, "--dev-bind", "/dev", "--dev"),
         {"read what was left in /dev/shm", "leave something in /dev/shm", "write to a terminal"}),
    ],
    ids=["files", "read-only", "network", "processes", "devices"],
)  # fmt: skip
@pytest.mark.skipif(Level.NAMESPACES not in CONFINING, reason="there is no bubblewrap here")
async def test_in_namespaces_each_defence_is_needed(
    change: Callable[[list[str]], list[str]], let_through: set[str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "options", edited(change))
    assert let_through <= await world.attacked(Level.NAMESPACES, network=False)


@pytest.mark.skipif(Level.NAMESPACES not in CONFINING, reason="there is no bubblewrap here")
async def test_in_namespaces_sockets_of_the_machine_need_a_filter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seccomp, "is_supported", lambda: False)
    through = {"open a socket of the machine"} & set(world.attacks)
    assert through <= await world.attacked(Level.NAMESPACES, network=False)


@pytest.mark.skipif(Level.NAMESPACES not in CONFINING or os.geteuid() != 0, reason="needs bubblewrap and root")
async def test_in_namespaces_root_would_change_settings_of_the_kernel(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "KERNEL_SETTINGS", ())
    assert "name the program for core dumps" in await world.attacked(Level.NAMESPACES, network=False)


@pytest.mark.skipif(Level.NAMESPACES not in CONFINING or os.geteuid() != 0, reason="needs bubblewrap and root")
async def test_in_namespaces_root_would_keep_its_powers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "options", edited(lambda given: without(given, "--cap-drop", "ALL")))
    assert {"mount", "make the system writable"} & await world.attacked(Level.NAMESPACES, network=False)
