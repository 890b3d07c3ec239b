"""`make hook-recordings`: the real Claude Code, with our plugin, a scripted model and a control plane of its own.

What Claude Code sends to each hook is kept under `tests/data/claude-code`, with paths and ids masked, and the
tests of the hooks play it. The session has to bring its pipeline to the end through the hooks alone.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pointsman.api.pipeline.v1 import pipeline_pb2_grpc
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.services.all_in_one import build_all
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import start
from tests.acceptance.agents import KEY, ROOT, installed, version
from tests.acceptance.agents_model import Model, Say, asked_in, model

PLUGIN = ROOT / "integrations" / "claude-code"
RECORDINGS = ROOT / "tests" / "data" / "claude-code"
SESSION_SECONDS = 180.0
PROMPT = "add a coupon field to the checkout [pipeline:quick-dev]"
DELEGATING = frozenset({"Task", "Agent"})
MARKER = '<!-- PIPELINE_ROUTE: {"verdict":"PASS","route":"NEXT"} -->'
TEE = """#!/bin/sh
umask 077
input="$RECORD_FOLDER/$(date +%s%N).$$.json"
cat > "$input"
exec "$RECORD_PYTHON" "$@" < "$input"
"""
STAGES = ("dev", "review", "test")
MADE_UP = {"session": "5f2c9a1e-7b7d-4c39-9a55-1f0d8a3f6c11", "agent": "a1b2c3d4"}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OTHER = re.compile(r"\ba[0-9a-f]{16}\b|\b(?:req|msg)_[A-Za-z0-9]{12,}\b")


def script(folder: Path) -> Any:
    """What the model says: the main agent sends three sub-agents and writes a file; each of them writes one, and ends."""

    def write(name: str) -> Say:
        return Say(tool="Write", arguments={"file_path": str(folder / name), "content": "Hello\n"})

    def send(tool: str, kind: str) -> Say:
        agent = {"description": kind, "prompt": "go", "subagent_type": f"pointsman:pointsman-{kind}"}
        return Say(tool=tool, arguments={**agent, "run_in_background": False})

    def answer(_agent: str, body: Any) -> Say:
        asked = asked_in(body)
        delegating = sorted(asked.tools & DELEGATING)
        if not asked.tools:
            return Say("Greeting")
        steps = [write("coupon.py"), Say(f"It is done.\n{MARKER}")]
        if delegating:
            steps = [*(send(delegating[0], kind) for kind in STAGES), write("notes.md"), Say("All done.")]
        return steps[min(len(asked.answers), len(steps) - 1)]

    return answer


def play(commands: Path, folder: Path, address: str, server: Model) -> subprocess.CompletedProcess[str]:
    """One session of the real program; its hooks' inputs are kept in a folder on their way."""
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    (folder / "kept").mkdir()
    tee = folder / "tee"
    tee.write_text(TEE)
    tee.chmod(0o700)
    variables = {
        **{key: os.environ[key] for key in ("LANG", "TERM", "USER") if key in os.environ},
        "PATH": os.pathsep.join((str(commands), os.environ["PATH"])),
        "HOME": str(folder / "home"),
        "PYTHONPATH": str(ROOT),
        "POINTSMAN_SERVER": address,
        "POINTSMAN_PYTHON": str(tee),
        "POINTSMAN_GUARD": "1",
        "RECORD_FOLDER": str(folder / "kept"),
        "RECORD_PYTHON": sys.executable,
        "ANTHROPIC_BASE_URL": f"{server.url}/claude",
        "ANTHROPIC_API_KEY": KEY,
    }
    line = ["claude", "-p", PROMPT, "--plugin-dir", str(PLUGIN), "--permission-mode", "acceptEdits"]
    return subprocess.run(
        line, cwd=folder / "work", env=variables, capture_output=True, text=True, timeout=SESSION_SECONDS, check=False
    )


def recorded(kept: Path) -> dict[str, dict[str, Any]]:
    """The first input of each kind, in the order of arrival, by the name of its file."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(kept.iterdir()):
        event = json.loads(path.read_text())
        kind = re.sub(r"(?<!^)(?=[A-Z])", "-", event["hook_event_name"]).lower()
        by = "-by-agent" if event.get("agent_id") and "tool_name" in event else ""
        name = "-".join(filter(None, (kind, str(event.get("tool_name", "")).lower()))) + by
        found.setdefault(name, event)
    return found


def masked(text: str, folder: Path, session: str, agent: str) -> str:
    """A recording with nothing in it of the machine that it was made on."""
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(folder / "work"))
    places = {str(folder / "home"): "/home/user", str(folder / "work"): "/home/user/shop", slug: "-home-user-shop"}
    for place, shown in {**places, str(folder): "/home/user", str(ROOT): "/home/user/pointsman"}.items():
        text = text.replace(place, shown)
    names = {session: MADE_UP["session"], agent: MADE_UP["agent"]}
    for number, found in enumerate(dict.fromkeys((*_UUID.findall(text), *_OTHER.findall(text)))):
        names.setdefault(found, f"00000000-0000-4000-8000-{number:012d}")
    for found, shown in names.items():
        text = text.replace(found, shown)
    return text


def keep(events: dict[str, dict[str, Any]], folder: Path) -> None:
    """Write the masked recordings, and of the first sub-agent's transcript the messages: the rest is about the machine."""
    stop = events["subagent-stop"]
    names = (folder, stop["session_id"], stop["agent_id"])
    for kind, event in json.loads(masked(json.dumps(events), *names)).items():
        (RECORDINGS / f"{kind}.json").write_text(json.dumps(event, indent=2, ensure_ascii=False) + "\n")
    lines = Path(stop["agent_transcript_path"]).read_text().splitlines(keepends=True)
    messages = "".join(line for line in lines if json.loads(line)["type"] in {"user", "assistant"})
    (RECORDINGS / "agent-transcript-recorded.jsonl").write_text(masked(messages, *names))


async def ended_as(address: str) -> str:
    """Where the session's pipeline is."""
    channel = open_channel(address)
    try:
        stub = pipeline_pb2_grpc.PipelineServiceStub(channel)
        listed = await stub.ListPipelines(rq.ListPipelinesRequest())
        return ", ".join(sp.PipelineState.Name(item.state) for item in listed.pipelines) or "none"
    finally:
        await channel.close()


async def record(commands: Path, folder: Path) -> None:
    """Record a session; one whose pipeline the hooks do not bring to its end says what happened."""
    services = build_all(StoreSettings(data=folder / "data"), ("router", "pipeline"))
    running = await start(services, ServerSettings(port=0))
    with model(script(folder / "work")) as server:
        done = await asyncio.to_thread(play, commands, folder, running.address, server)
        state = await ended_as(running.address)
    await running.stop()
    if done.returncode or not state.endswith("COMPLETED"):
        sys.exit("\n".join((f"exit {done.returncode}, pipeline {state}", done.stdout, done.stderr, *server.heard)))


def main(environment: str) -> None:
    """Record a session, keep what its hooks were sent, and say which version that was."""
    commands = installed("claude", Path(environment).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        asyncio.run(record(commands, folder))
        events = recorded(folder / "kept")
        keep(events, folder)
    print(json.dumps({"claude": version(commands, "claude", dict(os.environ)), "recorded": sorted(events)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
