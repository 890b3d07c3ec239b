"""Environments of deliveries: their dependencies and nothing else of them reaches set-up."""

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.project import read_project_file
from pointsman.project.setup_run import SetupFailed
from pointsman.proof.execution import CommandRunner, Purpose
from pointsman.proof.snapshot import Repository
from pointsman.sandbox import Level, available_level
from pointsman.worker.proof_environment import (
    DeliveryNotInstallable,
    ProofBase,
    ProofEnvironments,
    changed_manifests,
)
from tests.unit.worker.repositories import clone_of, commit, repository

PACKAGE = {"name": "x", "scripts": {"test": "node --test"}, "dependencies": {"left": "1"}}
INSTALL = "sh -c 'mkdir -p node_modules && cp package.json node_modules/seen && env > node_modules/variables'"
FILE = f'[workspace]\nsetup = ["npm --version", {json.dumps(INSTALL)}]\n'


async def base_of(folder: Path, files: dict[str, str], file: str = FILE) -> tuple[ProofBase, Path]:
    first = await repository(folder / "user", files)
    clone = await clone_of(folder / "user", folder / "clones")
    return ProofBase(Repository(clone.path), first, read_project_file(file.encode())), folder / "user"


async def delivered(base: ProofBase, user: Path, files: dict[str, str]) -> str:
    made = await commit(user, files)
    clone = await clone_of(user, base.repository.path.parent)
    await clone.fetch_source(made)
    return made


async def test_set_up_sees_the_bases_scripts_with_the_dependencies_of_the_delivery(tmp_path: Path) -> None:
    base, user = await base_of(tmp_path, {"package.json": json.dumps(PACKAGE), "setup.py": "print('base')"})
    changed = {
        **PACKAGE,
        "scripts": {"test": "true", "preinstall": "evil"},
        "dependencies": {"left": "1", "right": "2"},
    }
    made = await delivered(base, user, {"package.json": json.dumps(changed), "setup.py": "evil"})
    found = await changed_manifests(base, await base.repository.snapshot(made))
    assert set(found) == {"package.json"}
    seen = json.loads(found["package.json"])
    assert seen["dependencies"] == {"left": "1", "right": "2"}
    assert "evil" not in json.dumps(seen)


async def test_a_delivery_that_changes_scripts_alone_is_proven_in_the_bases_environment(tmp_path: Path) -> None:
    base, user = await base_of(tmp_path, {"package.json": json.dumps(PACKAGE)})
    changed = {**PACKAGE, "scripts": {"test": "true"}}
    made = await delivered(base, user, {"package.json": json.dumps(changed, indent=4)})
    assert await changed_manifests(base, await base.repository.snapshot(made)) == {}


async def test_the_same_dependencies_share_one_environment_and_others_have_their_own(tmp_path: Path) -> None:
    base, user = await base_of(tmp_path, {"package.json": json.dumps(PACKAGE), "a.txt": ""})
    same = await delivered(base, user, {"a.txt": "changed"})
    other = await delivered(base, user, {"package.json": json.dumps({**PACKAGE, "dependencies": {"right": "2"}})})
    said: list[str] = []
    furnish = ProofEnvironments(tmp_path / "root").furnisher(base, said.append)
    runner = CommandRunner(base.repository, tmp_path / "work", furnish)
    show = ("sh", "-c", "grep -c right node_modules/seen; grep npm_config_ignore_scripts node_modules/variables")
    printed = []
    for one in (base.commit, same, other):
        run = await runner.run(Purpose.DELIVERED, await base.repository.snapshot(one), show)
        printed.append(run.result.excerpt())
    assert printed == ["0", "0", "1\nnpm_config_ignore_scripts=true"]
    assert len(said) == 4


async def test_two_trees_at_once_have_environments_of_their_own(tmp_path: Path) -> None:
    base, _ = await base_of(tmp_path, {"a.txt": ""}, "")
    furnish = ProofEnvironments(tmp_path / "root").furnisher(base, print)
    snapshot = await base.repository.snapshot(base.commit)
    async with AsyncExitStack() as stack:
        trees = {(await stack.enter_async_context(furnish(snapshot))).tree for _ in range(20)}
    assert len(trees) == 20


FAILS = "sh -c '! grep -q broken package.json'"


async def test_dependencies_that_cannot_be_installed_are_the_deliverys_fault(tmp_path: Path) -> None:
    file = f"[workspace]\nsetup = [{json.dumps(FAILS)}]\n"
    base, user = await base_of(tmp_path, {"package.json": json.dumps(PACKAGE)}, file)
    made = await delivered(base, user, {"package.json": json.dumps({**PACKAGE, "dependencies": {"broken": "1"}})})
    furnish = ProofEnvironments(tmp_path / "root").furnisher(base, print)
    with pytest.raises(
        DeliveryNotInstallable, match=r"the dependencies that the work names in package.json: set-up failed"
    ):
        async with furnish(await base.repository.snapshot(made)):
            pass


async def test_a_delivery_that_brings_its_own_dependencies_is_refused_and_nothing_of_it_runs(tmp_path: Path) -> None:
    base, user = await base_of(tmp_path, {"package.json": json.dumps(PACKAGE)})
    made = await delivered(base, user, {"node_modules/.bin/node": "#!/bin/sh\nexit 0\n"})
    furnish = ProofEnvironments(tmp_path / "root").furnisher(base, print)
    runner = CommandRunner(base.repository, tmp_path / "work", furnish)
    with pytest.raises(DeliveryNotInstallable, match=r"node_modules: the tree has a file or folder of that name"):
        await runner.run(Purpose.DELIVERED, await base.repository.snapshot(made), ("false",))


async def test_a_set_up_that_fails_on_the_base_too_is_nobodys_fault(tmp_path: Path) -> None:
    base, user = await base_of(tmp_path, {"package.json": "{}"}, '[workspace]\nsetup = ["false"]\n')
    made = await delivered(base, user, {"package.json": json.dumps(PACKAGE)})
    furnish = ProofEnvironments(tmp_path / "root").furnisher(base, print)
    with pytest.raises(SetupFailed) as failed:
        async with furnish(await base.repository.snapshot(made)):
            pass
    assert not isinstance(failed.value, DeliveryNotInstallable)


SERVED = '[workspace]\nservices.web = "python3 -I -m http.server --bind 127.0.0.1 {port}"\n'
ASK = "import os, socket; socket.create_connection((os.environ['WEB_HOST'], int(os.environ['WEB_PORT']))).close()"


@pytest.mark.skipif(available_level() is Level.LANDLOCK, reason="a proof has no sockets at landlock")
async def test_a_command_of_a_proof_finds_its_services_and_a_missing_one_is_no_failed_proof(tmp_path: Path) -> None:
    base, _ = await base_of(tmp_path, {"a.txt": ""}, SERVED)
    environments = ProofEnvironments(tmp_path / "root")
    runner = CommandRunner(base.repository, tmp_path / "work", environments.furnisher(base, print))
    snapshot = await base.repository.snapshot(base.commit)
    run = await runner.run(Purpose.DELIVERED, snapshot, ("python3", "-c", ASK))
    assert run.ended_well, run.result.output
    missing = replace(base, project=read_project_file(SERVED.replace("python3", "no-such-server").encode()))
    runner = CommandRunner(base.repository, tmp_path / "more", environments.furnisher(missing, print))
    with pytest.raises(SetupFailed, match="cannot start the service web: no-such-server"):
        await runner.run(Purpose.DELIVERED, snapshot, ("true",))
