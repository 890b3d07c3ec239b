"""`make limit-recordings`: what the real agents print when a limit of their model is reached, kept for the tests.

Each agent runs once against a server that refuses every question: throttled (429 with a short wait), quota (used up),
overloaded (529, 503). One that still tries after two minutes is ended; what it printed until then is kept.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.acceptance.agents import PROGRAMS, ROOT, Program, Unavailable, installed
from tests.acceptance.limits_model import limited

RECORDINGS = ROOT / "tests" / "data" / "limits"
KINDS = ("throttled", "quota", "overloaded")
PATIENCE_SECONDS = 120.0
LINES = {
    "claude": ["claude", "-p", "--output-format", "stream-json", "--verbose", "say hello"],
    "codex": ["codex", "exec", "--json", "--skip-git-repo-check", "say hello"],
    "gemini": ["gemini", "--skip-trust", "--output-format", "stream-json", "-p", "say hello"],
    "aider": [
        "aider",
        "--yes-always",
        "--no-git",
        "--no-pretty",
        "--no-check-update",
        "--no-show-model-warnings",
        "--message",
        "say hello",
    ],
    "opencode": ["opencode", "run", "--format", "json", "say hello"],
    "pi": [
        "pi",
        "--offline",
        "--no-session",
        "--provider",
        "scripted",
        "--model",
        "scripted",
        "--mode",
        "json",
        "-p",
        "say hello",
    ],
    "gptme": ["gptme", "--non-interactive", "--model", "local/scripted", "--tools", "none", "say hello"],
}


def _pi(url: str, home: Path) -> dict[str, str]:
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "scripted"}]}
    place = home / ".pi" / "agent" / "models.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"providers": {"scripted": provider}}))
    return {}


def _gptme(url: str, home: Path) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none"}


RECORDED = {
    **PROGRAMS,
    "pi": Program("@mariozechner/pi-coding-agent", _pi),
    "gptme": Program("gptme", _gptme, registry="pip"),
}
"""The agents that have profiles, and two that have none, so that the rules meet what they were not written with."""


def record(name: str, kind: str, commands: Path) -> str:
    """What the program printed, masked, with its exit code in the last line."""
    with tempfile.TemporaryDirectory() as scratch, limited(kind) as server:
        home = Path(scratch).resolve() / "home"
        (home / "work").mkdir(parents=True)
        variables = {
            "PATH": os.pathsep.join((str(commands), os.environ["PATH"])),
            "HOME": str(home),
            "TERM": "dumb",
            **RECORDED[name].variables(f"{server.url}/{name}", home),
        }
        try:
            done = subprocess.run(
                LINES[name], cwd=home / "work", env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=PATIENCE_SECONDS, check=False,
            )  # fmt: skip
            printed, code = done.stdout, str(done.returncode)
        except subprocess.TimeoutExpired as over:
            printed, code = over.stdout or b"", "still trying"
        return (
            masked(printed.decode(errors="replace"), home, server.url)
            + f"\n(asked {server.asked} times, exit: {code})\n"
        )


def masked(text: str, home: Path, url: str) -> str:
    """Without what is of this machine or of this hour."""
    text = text.replace(str(home), "/home/user").replace(url, "http://127.0.0.1:8080").replace(str(ROOT), "/opt")
    text = re.sub(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "00000000-0000-4000-8000-000000000000", text)
    return text if len(text) < 20_000 else text[:4000] + "\n…\n" + text[-8000:]


def main(environment: str, *names: str) -> None:
    """Record every agent that can be had, and print what was kept."""
    RECORDINGS.mkdir(exist_ok=True)
    for name in names or tuple(LINES):
        try:
            commands = installed(name, Path(environment).resolve(), RECORDED[name])
        except Unavailable as reason:
            print(json.dumps({"agent": name, "SKIPPED": str(reason)}), flush=True)
            continue
        for kind in KINDS:
            text = record(name, kind, commands)
            (RECORDINGS / f"{name}-{kind}.txt").write_text(text)
            print(json.dumps({"agent": name, "kind": kind, "end": text.strip().splitlines()[-1]}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
