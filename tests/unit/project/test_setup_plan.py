"""What a set-up is made from: commands, manifests, variables; their digest; whose code runs while it installs."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pointsman.project import Command, WorkspaceSection, split_command
from pointsman.project.setup_plan import SourceFiles, plan_setup


def source(content: Mapping[str, str], tree_id: str = "t1") -> SourceFiles:
    async def read(name: str) -> bytes:
        return content[name].encode()

    return SourceFiles(tuple(content), read, tree_id)


BASE = {"package.json": "{}", "package-lock.json": "{}", "web/package.json": "{}", "src/app.js": "1"}


def workspace(*commands: str, **more: object) -> WorkspaceSection:
    return WorkspaceSection(tuple(map(split_command, commands)), **more)  # type: ignore[arg-type]


async def test_the_digest_covers_commands_manifests_and_variables_and_no_sources() -> None:
    first = await plan_setup(workspace("npm ci"), source(BASE))
    assert set(first.manifests) == {"package.json", "package-lock.json", "web/package.json"}
    same = await plan_setup(workspace("npm ci"), source({**BASE, "src/app.js": "2"}, "t2"))
    others = [
        await plan_setup(workspace("npm ci --force"), source(BASE)),
        await plan_setup(workspace("npm ci"), source({**BASE, "package-lock.json": "{ }"})),
        await plan_setup(workspace("npm ci"), source({**BASE, "web/package.json": "{ }"})),
        await plan_setup(workspace("npm ci", env={"NODE_ENV": "test"}), source(BASE)),
    ]
    assert same.digest == first.digest
    assert len({first.digest, *(other.digest for other in others)}) == 5


async def test_a_command_that_may_read_any_file_counts_with_the_whole_tree() -> None:
    made = [await plan_setup(workspace("make deps"), source(BASE, tree)) for tree in ("t1", "t2")]
    assert made[0].digest != made[1].digest


async def test_code_of_packages_runs_at_install_only_if_the_manifests_are_the_bases() -> None:
    same = await plan_setup(workspace("npm ci"), source(BASE), {"package.json": b"{}"})
    changed = await plan_setup(workspace("npm ci"), source(BASE), {"package.json": b'{"dependencies": {"x": "1"}}'})
    added = await plan_setup(workspace("npm ci"), source(BASE), {"api/package.json": b"{}"})
    asked = await plan_setup(
        workspace("npm ci", env={"npm_config_ignore_scripts": "false"}), source(BASE), {"package.json": b"{ }"}
    )
    found = [one.variables.get("npm_config_ignore_scripts") for one in (same, changed, added, asked)]
    assert found == [None, "true", "true", "false"]
    assert changed.manifests["package.json"] == b'{"dependencies": {"x": "1"}}'


def test_a_command_keeps_its_text() -> None:
    assert split_command("npm ci") == Command("npm ci", ("npm", "ci"))


async def test_a_go_project_has_a_build_cache_without_a_set_up_and_a_rust_project_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("go", "cargo"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    go = await plan_setup(workspace(), source({"go.mod": "module a", "a.go": ""}))
    assert [one.command.text for one in go.warmups] == ["go test -exec true ./..."]
    before = go.digest
    assert (go.caches, set(go.manifests)) == (("GOCACHE",), {"go.mod"})
    rust = {"Cargo.toml": "[package]", "src/lib.rs": ""}
    assert (await plan_setup(workspace(), source(rust))).warmups == ()
    (warmup,) = (await plan_setup(workspace("cargo fetch"), source(rust))).warmups
    assert (warmup.stubbed, warmup.builds) == ("*.rs", ("target",))
    (tmp_path / "go").write_text("#!/bin/sh\necho newer\n")
    assert (await plan_setup(workspace(), source({"go.mod": "module a", "a.go": ""}))).digest != before
    (tmp_path / "go").unlink()
    assert (await plan_setup(workspace(), source({"go.mod": "module a"}))).warmups == ()
