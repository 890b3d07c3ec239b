"""`pointsman schedule …` beside a real control plane: what people see, and what each refusal tells them to do."""

import asyncio
import json
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.credentials.location import owner_of
from tests.scenarios.commands import finished_in
from tests.scenarios.planes import NOBODY, WISH, plane
from tests.unit.worker.repositories import repository

pytestmark = pytest.mark.timeout(240)
NIGHTLY = ("--cron", "0 3 * * *")
REFUSED = (
    ((WISH, "--cron", "61 3 * * *"), 1, "spec.cron: '61 3 * * *' has a bad minute; minutes are 0-59"),
    (
        (WISH, *NIGHTLY, "--tz", "Europe/Berln"),
        1,
        "spec.time_zone: 'Europe/Berln' is no time zone; take a name such as",
    ),
    ((WISH, *NIGHTLY, "--branch", "nope"), 2, "--branch: 'nope' is no branch of"),
    (("show", "schedule_nope"), 2, "no schedule is called 'schedule_nope'; `pointsman schedule list`"),
)
"""Arguments, exit code, and what is said."""


async def schedule(place: Path, *arguments: str) -> tuple[int, str]:
    """The command in the repository, beside the control plane."""
    owner = owner_of(place / "data" / "orchestrator.lock")
    assert owner is not None
    asked = ("schedule", *arguments, "--server", owner.address)
    return await asyncio.to_thread(finished_in, place / "shop", *asked)


async def test_what_cannot_be_scheduled_is_refused_with_the_field_and_the_way_out(tmp_path: Path) -> None:
    await repository(tmp_path / "shop", {"a.py": "1\n"})
    async with plane(tmp_path / "data", NOBODY):
        for arguments, expected, said in REFUSED:
            code, printed = await schedule(tmp_path, *arguments)
            assert (code, said in printed, "Traceback" in printed) == (expected, True, False), printed
        code, printed = await schedule(tmp_path, "list")
        assert (code, printed.split(";")[0]) == (0, "no schedules"), "nothing of it was kept"


async def test_a_schedule_is_made_looked_at_paused_resumed_triggered_and_deleted_by_commands(tmp_path: Path) -> None:
    await repository(tmp_path / "shop", {"a.py": "1\n"})
    async with plane(tmp_path / "data", NOBODY) as here:

        async def told(*arguments: str, code: int = 0) -> str:
            ended, printed = await schedule(tmp_path, *arguments)
            assert ended == code, printed
            return printed

        made = json.loads(await told(WISH, *NIGHTLY, "--tz", "Europe/Berlin", "--json"))
        assert made["order"]["repository"]["branch"] == "main"
        header, row = (await told("list")).splitlines()
        assert (header.split()[0], row.split()[:2]) == ("SCHEDULE", [made["id"][:18], "ACTIVE"])
        shown = await told("show", made["id"][:-3])
        assert ("starts from main of repository" in shown, "next: " in shown) == (True, True), shown
        assert "paused: release week" in await told("pause", "last", "--reason", "release week")
        assert "it is paused already; possible now: resume, trigger, delete" in await told("pause", "last", code=1)
        assert "next: " in await told("resume", "last")
        refused = await told("resume", "last", code=1)
        assert "it is active: only a paused schedule is resumed; possible now: pause" in refused
        assert "waits: the run of " in await told("trigger", "last"), "no worker has the branch"
        assert "a run of it is live (about to start); wait for its end" in await told("trigger", "last", code=1)
        assert "deleted: enough" in await told("delete", "last", "--reason", "enough")
        assert "it is deleted; make another one" in await told("trigger", "last", code=1)
        assert (await told("list")).startswith("no schedules")
        assert not (await here.runs.ListRuns(pb.ListRunsRequest())).runs
