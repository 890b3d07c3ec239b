"""Environments for proofs: made once per digest, at one path, never changed by a proof, never the user's."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from pointsman.project import split_command
from pointsman.project.environments import Environment, EnvironmentStore, Fill
from pointsman.project.outputs import TreeRefused
from pointsman.project.setup_plan import SetupPlan
from pointsman.project.setup_run import SetupFailed
from pointsman.sandbox import CommandResult, Level, Limits, SandboxSpec, available_level, clean_environment, run

MAKE_VENV = ("python3 -m venv --without-pip .venv", "sh -c 'mkdir -p made/by && date > made/by/setup'")


def files(content: Mapping[str, str]) -> Fill:
    async def fill(folder: Path) -> None:
        await asyncio.to_thread(write, folder, content)

    return fill


def write(folder: Path, content: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def plan(*commands: str, **more: object) -> SetupPlan:
    return SetupPlan(tuple(map(split_command, commands)), **more)  # type: ignore[arg-type]


async def run_in(environment: Environment, *command: str) -> CommandResult:
    scratch = environment.place.parent / "scratch"
    await asyncio.to_thread(lambda: scratch.mkdir(exist_ok=True))
    variables = {"HOME": str(scratch), "TMPDIR": str(scratch), **environment.variables()}
    return await run(
        SandboxSpec(
            command,
            environment.tree,
            clean_environment(variables),
            writable=(environment.tree, scratch),
            readable=environment.readable,
            limits=Limits(seconds=60),
        )
    )


async def test_one_set_up_serves_all_proofs_of_its_digest_at_one_path(tmp_path: Path) -> None:
    store, made, said = EnvironmentStore(tmp_path / "environments"), plan(*MAKE_VENV), list[str]()
    paths = []
    for delivery in ("one", "two"):
        async with store.lend(made, files({"base": "x"}), said.append) as environment:
            await files({"delivered": delivery})(environment.tree)
            environment.attach()
            paths.append(environment.tree)
            ended = await run_in(environment, "python", "-c", "import sys; print(sys.prefix, open('delivered').read())")
            assert ended.excerpt() == f"{environment.place}/kept/.venv {delivery}"
            assert sorted(path.name for path in environment.tree.iterdir()) == [".venv", "delivered", "made"]
            assert environment.was_kept == (delivery == "two")
    assert paths[0] == paths[1]
    assert said == [f"set-up: `{command}`" for command in MAKE_VENV]


async def test_a_proof_cannot_change_what_is_installed_and_may_change_what_set_up_made_besides(tmp_path: Path) -> None:
    store, made = EnvironmentStore(tmp_path / "environments"), plan(*MAKE_VENV)
    async with store.lend(made, files({"base": "x"})) as environment:
        await files({"delivered": ""})(environment.tree)
        environment.attach()
        if available_level() > Level.NONE:
            assert not (await run_in(environment, "touch", ".venv/planted")).ok
        assert (await run_in(environment, "touch", "made/by/proof")).ok
    async with store.lend(made, files({})) as environment:
        await files({"delivered": ""})(environment.tree)
        environment.attach()
        assert not (environment.tree / ".venv" / "planted").exists()
        assert [path.name for path in (environment.tree / "made/by").iterdir()] == ["setup"]


async def test_proofs_at_the_same_time_have_environments_of_their_own(tmp_path: Path) -> None:
    store, made = EnvironmentStore(tmp_path / "environments"), plan("touch made")
    async with store.lend(made, files({})) as one, store.lend(made, files({})) as other:
        assert one.tree != other.tree
    async with store.lend(made, files({})) as again:
        assert (again.tree, again.was_kept) == (one.tree, True)


async def test_an_editable_install_is_of_the_delivered_tree_and_not_of_the_base(tmp_path: Path) -> None:
    install = "sh -c 'echo $PWD/src > .venv/lib/python3.$(.venv/bin/python -c \"import sys; print(sys.version_info[1])\")/site-packages/e.pth'"
    store, made = EnvironmentStore(tmp_path / "environments"), plan(MAKE_VENV[0], install)
    async with store.lend(made, files({"src/pack.py": "who = 'base'\n"})) as environment:
        await files({"src/pack.py": "who = 'delivered'\n"})(environment.tree)
        environment.attach()
        ended = await run_in(environment, "python", "-I", "-c", "import pack; print(pack.who)")
        assert ended.excerpt() == "delivered"


async def test_links_of_a_workspace_lead_to_the_packages_of_the_delivered_tree(tmp_path: Path) -> None:
    link = "sh -c 'mkdir -p node_modules/dep && echo installed > node_modules/dep/index && ln -s ../packages/own node_modules/own'"
    store, made = EnvironmentStore(tmp_path / "environments"), plan(link)
    async with store.lend(made, files({"packages/own/index": "base"})) as environment:
        await files({"packages/own/index": "delivered"})(environment.tree)
        environment.attach()
        ended = await run_in(environment, "cat", "node_modules/own/index", "node_modules/dep/index")
        assert ended.excerpt() == "deliveredinstalled"


@pytest.mark.parametrize("name", [".venv/bin/python", ".venv"])
async def test_a_delivered_tree_that_brings_its_own_dependencies_is_refused(tmp_path: Path, name: str) -> None:
    store = EnvironmentStore(tmp_path / "environments")
    async with store.lend(plan(*MAKE_VENV), files({})) as environment:
        await files({name: "#!/bin/sh\nexit 0\n"})(environment.tree)
        with pytest.raises(TreeRefused, match="remove it from git"):
            environment.attach()


async def test_a_delivered_link_out_of_the_tree_is_refused_where_set_up_puts_files(tmp_path: Path) -> None:
    store, outside = EnvironmentStore(tmp_path / "environments"), tmp_path / "outside"
    outside.mkdir()
    async with store.lend(plan("sh -c 'mkdir -p web/node_modules'"), files({"web/package.json": "{}"})) as environment:
        await files({"a": ""})(environment.tree)
        (environment.tree / "web").symlink_to(outside)
        with pytest.raises(TreeRefused, match="leads out of it"):
            environment.attach()
    assert list(outside.iterdir()) == []


async def test_a_failed_set_up_says_what_to_do_and_is_not_kept(tmp_path: Path) -> None:
    store, broken = EnvironmentStore(tmp_path / "environments"), plan("sh -c 'echo no such package; exit 3'")
    for _ in range(2):
        with pytest.raises(SetupFailed) as failed:
            async with store.lend(broken, files({})):
                pass
        assert str(failed.value).startswith("set-up failed: `sh -c 'echo no such package; exit 3'`: it ended with exit")
        assert "\n  no such package\nwhat to do: try the command in a fresh clone" in str(failed.value)


async def test_a_set_up_whose_program_is_missing_names_it(tmp_path: Path) -> None:
    with pytest.raises(SetupFailed, match="what to do: install no-such-tool, or name another command"):
        async with EnvironmentStore(tmp_path / "environments").lend(plan("no-such-tool sync"), files({})):
            pass


async def test_a_set_up_that_asks_gets_the_end_of_input(tmp_path: Path) -> None:
    asks = plan("sh -c 'printf \"proceed? \"; read answer || { echo nobody answers; exit 1; }'")
    with pytest.raises(SetupFailed, match=r"proceed\? nobody answers"):
        async with EnvironmentStore(tmp_path / "environments").lend(asks, files({})):
            pass


async def test_a_set_up_that_never_ends_is_killed_at_its_limit(tmp_path: Path) -> None:
    endless = plan("sleep 3600", seconds=1.0)
    with pytest.raises(SetupFailed, match="when the 1 s of all set-up commands were over, and was killed") as failed:
        async with EnvironmentStore(tmp_path / "environments").lend(endless, files({})):
            pass
    assert "[workspace] timeout gives it more time" in str(failed.value)


async def test_a_set_up_sees_neither_the_users_home_nor_secrets_of_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    shows = plan("sh -c 'env > seen; echo $HOME > home'")
    async with EnvironmentStore(tmp_path / "environments").lend(shows, files({})) as environment:
        await files({"a": ""})(environment.tree)
        environment.attach()
        assert "secret" not in (environment.tree / "seen").read_text()
        assert (environment.tree / "home").read_text().strip() == str(environment.place / "home")


async def test_environments_that_nobody_used_for_long_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pointsman.project.environments.KEPT_DIGESTS", 2)
    store = EnvironmentStore(tmp_path / "environments")
    plans = [plan(f"touch made-{number}") for number in range(4)]
    async with store.lend(plans[0], files({})):
        for number, other in enumerate(plans[1:]):
            async with store.lend(other, files({})) as environment:
                os.utime(environment.place.parent, (number, number))
    kept = {path.name for path in (tmp_path / "environments").iterdir()}
    assert plans[0].digest[:20] in kept
    assert len(kept) == 2
