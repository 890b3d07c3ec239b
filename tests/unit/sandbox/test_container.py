"""A container gets what the spec names and nothing else; no secret stands in the engine's arguments."""

from pathlib import Path

import pytest

from pointsman.sandbox import EndedBy, Level, Limits, SandboxSpec, container, run

SECRET = "a-secret-token"
AFTER_THE_IMAGE = 'while [ "$1" != image ]; do shift; done; shift; '


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine that runs the command as it is, and notes what it was asked."""
    noted, made = tmp_path / "noted", tmp_path / "engine"
    made.write_text(f'#!/bin/sh\necho "$@" >> {noted}\n[ "$1" = run ] || exit 0\n{AFTER_THE_IMAGE}exec "$@"\n')
    made.chmod(0o755)
    monkeypatch.setenv(container.ENGINE_SETTING, str(made))
    monkeypatch.setenv(container.IMAGE_SETTING, "image")
    return noted


def asked_of(engine: Path) -> str:
    return engine.read_text()


def spec(folder: Path, *command: str, network: bool = False, seconds: float = 30.0) -> SandboxSpec:
    tree, given = folder / "tree", folder / "given"
    for place in (tree, given / "hidden"):
        place.mkdir(parents=True, exist_ok=True)
    return SandboxSpec(
        command, tree, {"TOKEN": SECRET, "HOME": str(tree), "PATH": "/host/bin"}, (tree,), (given,), (given / "hidden",),
        network, limits=Limits(seconds=seconds), level=Level.CONTAINER,
    )  # fmt: skip


def test_the_command_line_names_what_is_shown_and_no_secret(engine: Path, tmp_path: Path) -> None:
    asked = spec(tmp_path, "make", "test")
    words = container.command(asked, "name")
    assert words[-3:] == ["image", "make", "test"]
    assert f"{tmp_path}/tree:{tmp_path}/tree" in words
    assert f"{tmp_path}/given:{tmp_path}/given:ro" in words
    assert words[words.index(f"{tmp_path}/given/hidden") - 1] == "--tmpfs"
    assert {"--read-only", "no-new-privileges", "none"} <= set(words)
    assert not any(SECRET in word or "/host/bin" in word for word in words)
    assert container.environment(asked)["TOKEN"] == SECRET
    assert "none" not in container.command(spec(tmp_path, "true", network=True), "name")


async def test_a_command_in_a_container_ends_as_it_would_outside(engine: Path, tmp_path: Path) -> None:
    ended = await run(spec(tmp_path, "sh", "-c", "echo $TOKEN; exit 3"))
    assert (ended.exit_code, ended.output, ended.level) == (3, f"{SECRET}\n".encode(), Level.CONTAINER)
    assert "rm --force" not in asked_of(engine)


async def test_a_container_whose_command_was_killed_is_removed(engine: Path, tmp_path: Path) -> None:
    ended = await run(spec(tmp_path, "sleep", "600", seconds=0.3))
    assert ended.ended_by is EndedBy.TIME_LIMIT
    started, removed = asked_of(engine).splitlines()
    assert removed == f"rm --force {started.split('--name ')[1].split()[0]}"


def test_what_is_missing_for_containers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(container.IMAGE_SETTING, raising=False)
    assert container.IMAGE_SETTING in container.lack()
    monkeypatch.setenv(container.IMAGE_SETTING, "image")
    monkeypatch.setenv(container.ENGINE_SETTING, "no-such-engine --option")
    assert "neither podman nor docker is installed" in container.lack()
