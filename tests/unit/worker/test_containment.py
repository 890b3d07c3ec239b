"""A command that nobody trusts cannot outlive, outgrow or outwrite what it was given."""

import asyncio
import os
from pathlib import Path

import pytest

from pointsman.worker.containment import CommandResult, EndedBy, Limits, SupervisedCommand, clean_environment, run
from tests.helpers.eventually import eventually


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    """Where the command may write."""
    made = tmp_path / "w"
    made.mkdir()
    return made


async def shell(script: str, folder: Path, **limits: float) -> CommandResult:
    given = Limits(**{"seconds": 30.0, **limits})  # type: ignore[arg-type]
    return await run(SupervisedCommand(["bash", "-c", script], folder, clean_environment({}), (folder,), limits=given))


def processes_of(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


async def test_the_exit_code_output_and_digest_are_kept(tmp_path: Path) -> None:
    ended = await shell("echo out; echo err >&2; exit 3", tmp_path / "w")
    assert (ended.exit_code, ended.ended_by, ended.output) == (3, EndedBy.ITSELF, b"out\nerr\n")
    assert ended.reason == "it ended with exit code 3"


async def test_a_command_past_its_time_limit_is_killed_and_says_so(tmp_path: Path) -> None:
    ended = await shell("sleep 600", tmp_path / "w", seconds=0.3)
    assert ended.ended_by is EndedBy.TIME_LIMIT
    assert not ended.ok
    assert "time limit" in ended.reason


async def test_a_flood_of_output_is_cut_and_ends_the_command(tmp_path: Path) -> None:
    ended = await shell("yes", tmp_path / "w", output_bytes=10_000)
    assert ended.ended_by is EndedBy.OUTPUT_LIMIT
    assert len(ended.output) == 10_000


async def test_a_command_that_ignores_polite_signals_is_killed_all_the_same(tmp_path: Path) -> None:
    ended = await shell("trap '' TERM INT HUP; while true; do sleep 0.1; done", tmp_path / "w", seconds=0.3)
    assert ended.ended_by is EndedBy.TIME_LIMIT


async def test_processes_that_left_the_group_are_found_and_killed(tmp_path: Path) -> None:
    ended = await shell("setsid sleep 654321 & (setsid sleep 654321 &); echo done", tmp_path / "w")
    assert ended.ok
    assert ended.strays >= 1
    assert not processes_of("654321")


async def test_too_many_processes_end_the_command(tmp_path: Path) -> None:
    script = "for n in $(seq 60); do sleep 765432 & done; wait"
    ended = await shell(script, tmp_path / "w", processes=40)
    assert ended.ended_by is EndedBy.PROCESS_LIMIT
    assert not processes_of("765432")


@pytest.mark.skipif(not Path("/proc/sys/kernel").exists(), reason="needs Linux")
async def test_nothing_outside_can_be_written_and_nobody_outside_be_signalled(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    ended = await shell(f"echo x > {outside}; kill -0 {os.getpid()} && echo reached; echo in > inside", tmp_path / "w")
    assert not outside.exists()
    assert b"reached" not in ended.output
    assert (tmp_path / "w" / "inside").read_text() == "in\n"


async def test_it_is_the_confinement_that_holds_a_command_back(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    ended = await run(SupervisedCommand(["bash", "-c", f"echo x > {outside}"], tmp_path / "w", clean_environment({})))
    assert ended.ok
    assert outside.exists()


async def test_a_cancelled_command_leaves_nothing_behind(tmp_path: Path) -> None:
    running = asyncio.create_task(shell("setsid sleep 876543 & sleep 876543", tmp_path / "w"))

    async def started() -> bool:
        return len(processes_of("sleep\x00876543")) == 2

    await eventually(started)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not processes_of("sleep\x00876543")


async def test_a_command_that_cannot_start_says_why(tmp_path: Path) -> None:
    ended = await run(SupervisedCommand(["no-such-command"], tmp_path, clean_environment({})))
    assert ended.exit_code == 127
    assert b"no-such-command" in ended.output


async def test_secrets_of_the_environment_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    monkeypatch.setenv("WANTED", "yes")
    environment = clean_environment({"GIVEN": "1"}, ["WANTED"])
    assert "SECRET_TOKEN" not in environment
    assert (environment["WANTED"], environment["GIVEN"]) == ("yes", "1")
