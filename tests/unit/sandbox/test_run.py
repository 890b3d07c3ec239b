"""A command that nobody trusts cannot outlive, outgrow or outwrite what it was given, at every level that is here."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.sandbox import (
    CommandResult,
    EndedBy,
    Level,
    Limits,
    SandboxSpec,
    available_level,
    clean_environment,
    run,
)
from tests.helpers.eventually import eventually
from tests.helpers.levels import levels_here

HERE = levels_here()
CONFINING = [level for level in HERE if level > Level.NONE]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the command may write."""
    made = tmp_path / "w"
    made.mkdir()
    return made


async def shell(script: str, folder: Path, level: Level, **limits: float) -> CommandResult:
    given = Limits(**{"seconds": 30.0, **limits})  # type: ignore[arg-type]
    command = ["bash", "-c", script]
    return await run(SandboxSpec(command, folder, clean_environment({}), (folder,), limits=given, level=level))


def processes_of(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("level", HERE)
async def test_the_exit_code_output_digest_and_level_are_kept(level: Level, folder: Path) -> None:
    ended = await shell("echo out; echo err >&2; exit 3", folder, level)
    assert (ended.exit_code, ended.ended_by, ended.output) == (3, EndedBy.ITSELF, b"out\nerr\n")
    assert ended.reason == "it ended with exit code 3"
    assert ended.level is level


async def test_without_a_level_the_strongest_of_the_machine_is_used(folder: Path) -> None:
    ended = await run(SandboxSpec(["true"], folder, clean_environment({}), (folder,)))
    assert ended.ok
    assert ended.level is available_level()


@pytest.mark.parametrize("level", HERE)
async def test_a_command_past_its_time_limit_is_killed_and_says_so(level: Level, folder: Path) -> None:
    ended = await shell("sleep 600", folder, level, seconds=0.3)
    assert ended.ended_by is EndedBy.TIME_LIMIT
    assert not ended.ok
    assert "time limit" in ended.reason


@pytest.mark.parametrize("level", HERE)
async def test_a_flood_of_output_is_cut_and_ends_the_command(level: Level, folder: Path) -> None:
    ended = await shell("yes", folder, level, output_bytes=10_000)
    assert ended.ended_by is EndedBy.OUTPUT_LIMIT
    assert len(ended.output) == 10_000


@pytest.mark.parametrize("level", HERE)
async def test_a_command_that_ignores_polite_signals_is_killed_all_the_same(level: Level, folder: Path) -> None:
    ended = await shell("trap '' TERM INT HUP; while true; do sleep 0.1; done", folder, level, seconds=0.3)
    assert ended.ended_by is EndedBy.TIME_LIMIT


@pytest.mark.parametrize("level", HERE)
async def test_processes_that_left_the_group_are_found_counted_and_killed(level: Level, folder: Path) -> None:
    marker = f"65432{level:d}"
    ended = await shell(f"setsid sleep {marker} & (setsid sleep {marker} &); echo done", folder, level)
    assert ended.ok
    assert ended.strays >= 1
    assert not processes_of(marker)


@pytest.mark.parametrize("level", HERE)
async def test_a_command_that_leaves_nothing_behind_has_no_strays(level: Level, folder: Path) -> None:
    assert (await shell("echo $(echo done)", folder, level)).strays == 0


@pytest.mark.parametrize("level", HERE)
async def test_too_many_processes_end_the_command(level: Level, folder: Path) -> None:
    marker = f"76543{level:d}"
    ended = await shell(f"for n in $(seq 60); do sleep {marker} & done; wait", folder, level, processes=40)
    assert ended.ended_by is EndedBy.PROCESS_LIMIT
    assert not processes_of(marker)


@pytest.mark.parametrize("level", CONFINING)
async def test_nothing_outside_can_be_written_and_nobody_outside_be_signalled(level: Level, folder: Path) -> None:
    outside = folder.parent / "outside"
    ended = await shell(f"echo x > {outside}; kill -0 {os.getpid()} && echo reached; echo in > inside", folder, level)
    assert not outside.exists()
    assert b"reached" not in ended.output
    assert (folder / "inside").read_text() == "in\n"


async def test_it_is_the_level_that_holds_a_command_back(folder: Path) -> None:
    outside = folder.parent / "outside"
    ended = await shell(f"echo x > {outside}", folder, Level.NONE)
    assert ended.ok
    assert outside.exists()


@pytest.mark.parametrize("level", CONFINING)
async def test_a_readable_folder_is_read_and_not_written_and_a_hidden_one_below_it_not_read(
    level: Level, folder: Path
) -> None:
    given = folder.parent / "given"
    (given / "hidden").mkdir(parents=True)
    (given / "file").write_text("to be read")
    (given / "hidden" / "file").write_text("a secret")
    script = f"cat {given}/file; echo x > {given}/file; cat {given}/hidden/file; echo x > {given}/hidden/new"
    spec = SandboxSpec(["bash", "-c", script], folder, clean_environment({}), (folder,), (given,), level=level)
    assert b"to be read" in (await run(spec)).output
    hiding = SandboxSpec(
        spec.command, folder, spec.environment, (folder,), (given,), hidden=(given / "hidden",), level=level
    )
    assert b"a secret" not in (await run(hiding)).output
    assert (given / "file").read_text() == "to be read"
    assert not (given / "hidden" / "new").exists()


@pytest.mark.parametrize("level", HERE)
async def test_a_toolchain_inside_a_writable_folder_stays_writable(level: Level, folder: Path) -> None:
    (folder / ".venv" / "bin").mkdir(parents=True)
    environment = clean_environment({"PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"})
    command = ("touch", ".venv/installed", ".venv/bin/program")
    ended = await run(SandboxSpec(command, folder, environment, (folder,), level=level))
    assert ended.ok, ended.excerpt()


@pytest.mark.parametrize("level", HERE)
async def test_a_cancelled_command_leaves_nothing_behind(level: Level, folder: Path) -> None:
    marker = f"sleep\x0087654{level:d}"
    script = marker.replace("\0", " ")
    running = asyncio.create_task(shell(f"setsid {script} & {script}", folder, level))

    async def started() -> bool:
        return len(processes_of(marker)) == 2

    await eventually(started)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not processes_of(marker)


@pytest.mark.parametrize("level", HERE)
async def test_a_command_that_cannot_start_says_why(level: Level, folder: Path) -> None:
    ended = await run(SandboxSpec(["no-such-command"], folder, clean_environment({}), level=level))
    assert ended.exit_code == 127
    assert b"cannot start 'no-such-command': No such file" in ended.output


@pytest.mark.parametrize("level", CONFINING)
async def test_a_program_that_the_sandbox_hides_is_named(level: Level, folder: Path) -> None:
    program = folder.parent / "elsewhere" / "tool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (folder / "tool").symlink_to(program)
    ended = await run(SandboxSpec(["./tool"], folder, clean_environment({}), (folder,), level=level))
    assert ended.exit_code == 127
    assert f"{program} is not visible in the sandbox".encode() in ended.output


async def test_secrets_of_the_environment_are_not_passed_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    monkeypatch.setenv("WANTED", "yes")
    environment = clean_environment({"GIVEN": "1"}, ["WANTED"])
    assert "SECRET_TOKEN" not in environment
    assert (environment["WANTED"], environment["GIVEN"]) == ("yes", "1")
    ended = await run(SandboxSpec(["env"], folder, environment, (folder,)))
    assert b"GIVEN=1" in ended.output
    assert b"hush" not in ended.output


@pytest.mark.parametrize("level", HERE)
async def test_what_is_given_to_a_command_stands_in_no_arguments_of_ours(level: Level, folder: Path) -> None:
    secret = f"secret-{level}"
    spec = SandboxSpec(
        ["bash", "-c", "echo ready; cat"], folder, clean_environment({"TOKEN": secret}), (folder,), level=level,
        stdin=Path("/dev/zero"), limits=Limits(seconds=0.3),
    )  # fmt: skip
    running = asyncio.create_task(run(spec))
    seen: list[str] = []

    async def ended() -> bool:
        seen.extend(processes_of(secret))
        return running.done()

    await eventually(ended)
    assert not seen


REACH_OUT = """
import socket
for address in (("192.0.2.1", 80), ("packages.example.com", 443), ("2001:db8::1", 80)):
    try:
        socket.create_connection(address, 5)
    except OSError as error:
        print(error)
with socket.socket() as server:
    server.bind(("127.0.0.1", 0))
    server.listen()
    socket.create_connection(server.getsockname()).close()
"""


@pytest.mark.skipif(Level.NAMESPACES not in HERE, reason="there is no bubblewrap here")
async def test_what_a_command_without_network_tried_to_reach_is_counted_and_named(folder: Path) -> None:
    command = ("/usr/bin/python3", "-I", "-S", "-c", REACH_OUT)
    spec = SandboxSpec(command, folder, clean_environment({}), (folder,), level=Level.NAMESPACES)
    ended = await run(spec)
    assert ended.exit_code == 0, ended.output
    assert ended.denied_connects >= 1
    assert ended.denied_names == ("packages.example.com",)
    assert "(packages.example.com); [proof] network = true allows it" in ended.notes
    quiet = await run(replace(spec, command=("true",)))
    assert (quiet.denied_connects, quiet.denied_names, quiet.denied) == (0, (), "")


SPY = """
import glob, pathlib
mark = pathlib.Path("mark").read_bytes()
for place in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
    try:
        if mark in pathlib.Path(place).read_bytes():
            print(place)
    except OSError:
        pass
"""


@pytest.mark.parametrize("level", [level for level in HERE if level < Level.CONTAINER])
async def test_a_secret_of_one_command_is_in_no_arguments_or_variables_that_another_can_read(
    level: Level, tmp_path: Path
) -> None:
    mark = f"secret-{os.urandom(8).hex()}"
    keeper, spy = tmp_path / "keeper", tmp_path / "spy"
    for place in (keeper, spy):
        place.mkdir()
    (spy / "mark").write_text(mark)
    waiting = 'echo "$API_KEY" > begun; while [ ! -e stop ]; do sleep 0.05; done'
    environment = clean_environment({"API_KEY": mark})
    limits = Limits(seconds=60.0)
    keeps = run(SandboxSpec(("sh", "-c", waiting), keeper, environment, (keeper,), limits=limits, level=level))
    holding = asyncio.create_task(keeps)

    async def begun() -> bool:
        return (keeper / "begun").exists()

    await eventually(begun)
    command = ("/usr/bin/python3", "-I", "-S", "-c", SPY)
    seen = await run(SandboxSpec(command, spy, clean_environment({}), (spy,), network=True, limits=limits, level=level))
    (keeper / "stop").touch()
    await holding
    assert seen.exit_code == 0
    assert bool(seen.output) == (level is Level.NONE), seen.output
