"""Notices of `pointsman up`, which is killed before and after they are taken: none is lost, each has one id."""

import json
from pathlib import Path

from pointsman.client import Order, connect
from pointsman.worker.git import git
from tests.helpers.eventually import eventually_now
from tests.helpers.hello_repository import example_repository
from tests.scenarios.commands import Running, until_killed
from tests.scenarios.processes import mocked
from tests.unit.notify.test_notices import listening


async def test_up_notifies_as_its_repository_says_and_a_death_at_any_step_loses_no_notice(tmp_path: Path) -> None:
    repository, data = await example_repository(tmp_path), tmp_path / "data"
    environment = {"POINTSMAN_DATA": str(data), **mocked()}

    def up() -> Running:
        process = Running(("up", "--port", "0"), environment, repository)
        process.line_with("questions of runs are sent to 127.0.0.1")
        return process

    async def ask() -> str:
        async with connect(data=data) as client:
            return (await client.runs.submit(Order("fix something", as_action=True))).run.id

    with listening(refuses=1) as receiver:
        (repository / "pointsman.toml").write_text(f'[notify]\nwebhook = "{receiver.url}"\n')
        await git(repository, "add", "-A")
        await git(repository, "commit", "-q", "-m", "notify me")

        def about(run_id: str) -> list[str]:
            found = [json.loads(body) for _, body in receiver.got]
            return [one["id"] for one in found if one["run_id"] == run_id]

        with until_killed(up()) as process:
            first = await ask()
            eventually_now(lambda: about(first), 30)
            process.kill()
        with until_killed(up()) as process:
            eventually_now(lambda: len(about(first)) > 1, 30)
            process.kill()
        with until_killed(up()):
            second = await ask()
            eventually_now(lambda: about(second), 30)
        assert len(set(about(first))) == len(set(about(second))) == 1
        links = [json.loads(body)["link"] for _, body in receiver.got]
        assert all(link.startswith("http://127.0.0.1:") for link in links), "the console of `up` itself"
