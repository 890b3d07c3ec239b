"""Build caches of proofs: filled by the base alone, shared, and never changed by a proof."""

import asyncio
from pathlib import Path

from pointsman.project import split_command
from pointsman.project.environments import Environment, EnvironmentStore
from pointsman.project.setup_plan import SetupPlan, Warmup
from pointsman.sandbox import CommandResult, Level, Limits, SandboxSpec, available_level, clean_environment, run
from tests.helpers.limits import scaled
from tests.unit.project.test_environments import files

FILL = Warmup(split_command("sh -c 'mkdir $BUILD_CACHE/ab; cat source > $BUILD_CACHE/ab/entry'"))
PLAN = SetupPlan((), warmups=(FILL,), caches=("BUILD_CACHE",))
SKELETON = Warmup(
    split_command(
        "sh -c 'mkdir target; find . -type f -not -path \"./.git/*\" | xargs grep -H . > target/seen; sh ./build.rs'"
    ),
    skeleton=("Cargo.toml",),
    stubbed="*.rs",
    stub="# nothing\n",
    builds=("target",),
)


async def shell(environment: Environment, script: str) -> CommandResult:
    """Runs a script as a proof's command."""
    return await run(
        SandboxSpec(
            ("sh", "-c", script),
            environment.tree,
            clean_environment(environment.variables()),
            writable=(environment.tree, *environment.writable),
            readable=environment.readable,
            limits=Limits(seconds=scaled(30)),
        )
    )


async def test_a_cache_is_filled_once_from_the_base_and_read_by_every_proof(tmp_path: Path) -> None:
    store, said = EnvironmentStore(tmp_path / "environments"), list[str]()
    for _ in range(2):
        async with store.lend(PLAN, files({"source": "base"}), said.append) as environment:
            await files({"source": "delivered"})(environment.tree)
            environment.attach()
            assert (await shell(environment, "cat $BUILD_CACHE/ab/entry")).excerpt() == "base"
    assert said == [f"build cache: `{FILL.command.text}`"]


async def test_what_a_proof_adds_to_its_cache_goes_with_it_and_what_is_kept_cannot_be_changed(tmp_path: Path) -> None:
    store = EnvironmentStore(tmp_path / "environments")
    attack = (
        "echo own > $BUILD_CACHE/ab/new && cat $BUILD_CACHE/ab/new; "
        "echo forged > $BUILD_CACHE/ab/entry; rm $BUILD_CACHE/ab/entry; echo forged > $BUILD_CACHE/ab/entry"
    )
    async with store.lend(PLAN, files({"source": "base"})) as environment:
        await files({"delivered": ""})(environment.tree)
        environment.attach()
        assert (await shell(environment, attack)).output.startswith(b"own\n")
    async with store.lend(PLAN, files({"source": "other"})) as environment:
        await files({"delivered": ""})(environment.tree)
        environment.attach()
        if available_level() > Level.NONE:
            assert (await shell(environment, "cat $BUILD_CACHE/ab/entry; ls $BUILD_CACHE/ab")).excerpt() == "baseentry"


async def test_set_up_cannot_write_where_the_cache_will_be(tmp_path: Path) -> None:
    setup = (
        split_command("sh -c 'mkdir -p ../caches/BUILD_CACHE/ab; echo forged > ../caches/BUILD_CACHE/ab/entry; true'"),
    )
    store = EnvironmentStore(tmp_path / "environments")
    made = SetupPlan(setup, warmups=(FILL,), caches=("BUILD_CACHE",))
    async with store.lend(made, files({"source": "base"})) as environment:
        environment.attach()
        if available_level() > Level.NONE:
            assert (environment.place / "caches" / "BUILD_CACHE" / "ab" / "entry").read_text() == "base"


async def test_a_build_is_made_from_manifests_and_empty_sources_and_every_proof_has_a_copy(tmp_path: Path) -> None:
    base = {
        "Cargo.toml": "[package]\n",
        "src/lib.rs": "real\n",
        "build.rs": "echo ran > target/ran\n",
        ".cargo/config.toml": "[build]\n",
    }
    store, made = EnvironmentStore(tmp_path / "environments"), SetupPlan((), warmups=(SKELETON,))
    for _ in range(2):
        async with store.lend(made, files(base)) as environment:
            await files({"delivered": ""})(environment.tree)
            environment.attach()
            assert sorted(path.name for path in (environment.tree / "target").iterdir()) == ["seen"]
            seen = sorted((environment.tree / "target" / "seen").read_text().splitlines())
            assert seen == ["./Cargo.toml:[package]", "./build.rs:# nothing", "./src/lib.rs:# nothing"]
            await shell(environment, "echo changed > target/seen")


async def test_a_warm_up_that_fails_leaves_set_up_as_it_is(tmp_path: Path) -> None:
    store = EnvironmentStore(tmp_path / "environments")
    made = SetupPlan((split_command("touch made"),), warmups=(Warmup(split_command("false")),), caches=("BUILD_CACHE",))
    async with store.lend(made, files({})) as environment:
        await files({"delivered": ""})(environment.tree)
        environment.attach()
        assert (await shell(environment, "ls; ls $BUILD_CACHE")).excerpt().split() == ["delivered", "made"]


async def test_agents_that_come_at_once_wait_for_one_warm_up_and_each_has_a_copy_to_change(tmp_path: Path) -> None:
    store, said = EnvironmentStore(tmp_path / "environments"), list[str]()

    async def copy(number: int) -> Path:
        copied = await store.copy_downloads(PLAN, files({"source": "base"}), tmp_path / str(number), said.append)
        entry = copied.caches["BUILD_CACHE"] / "ab" / "entry"
        assert entry.read_text() == "base"
        entry.write_text("forged")
        return entry

    assert len(set(await asyncio.gather(*map(copy, range(3))))) == 3
    assert said == [f"build cache: `{FILL.command.text}`"]
    async with store.lend(PLAN, files({"source": "base"})) as environment:
        environment.attach()
        assert (environment.place / "own" / "BUILD_CACHE" / "ab" / "entry").read_text() == "base"


async def test_a_copy_from_a_place_that_is_being_removed_does_not_count(tmp_path: Path) -> None:
    store = EnvironmentStore(tmp_path / "environments")
    async with store.lend(PLAN, files({"source": "base"})) as environment:
        entry = environment.place / "caches" / "BUILD_CACHE" / "ab" / "entry"
    entry.unlink()
    (environment.place / "ready.json").unlink()
    copied = await store.copy_downloads(PLAN, files({"source": "base"}), tmp_path / "agent")
    assert (copied.caches["BUILD_CACHE"] / "ab" / "entry").read_text() == "base"
