"""`make mcp-acceptance`: the MCP Inspector's command line and the real Claude Code, with a scripted model, against us.

Both reach a real control plane with mock agents. Claude Code has to bring a run home by MCP alone: it hands in a vague
wish, puts the question's answer, and has the delivery; the control plane is killed in between.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.agents import KEY, ROOT, Unavailable, require, version
from tests.acceptance.agents_model import Model, Say, asked_in, model
from tests.scenarios.commands import Running

PACKAGES = {"claude": "@anthropic-ai/claude-code", "inspector": "@modelcontextprotocol/inspector"}
SESSION_SECONDS = 240.0
_RUN_ID = re.compile(r"run_[0-9a-z]{20,}")
TOOL = "mcp__pointsman__"


def commands_of(name: str, folder: Path) -> Path:
    """The folder with a program's command, installed if it is not yet."""
    place = folder / name
    commands = place / "node_modules" / ".bin"
    if not commands.exists():
        place.mkdir(parents=True, exist_ok=True)
        require(
            [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                "--prefix",
                str(place),
                f"{PACKAGES[name]}@latest",
            ]
        )
    return commands


class ControlPlane:
    """`pointsman up` with mock agents and `/mcp`; it can be killed and comes back on the same data."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **{key: os.environ[key] for key in ("LANG", "TERM", "USER", "PATH") if key in os.environ},
            "HOME": str(folder / "home"),
            "POINTSMAN_DATA": str(folder / "data"),
            "POINTSMAN_FULL_MOCK_MODE": "1",
            "POINTSMAN_GATEWAY_MCP": "1",
            "POINTSMAN_GATEWAY_PORT": "0",
            "PYTHONPATH": str(ROOT),
        }
        (folder / "home").mkdir()
        self.start()

    def start(self) -> None:
        """Start it; the gateway's address is another one each time."""
        self.process = Running(("up", "--port", "0"), self.environment)
        self.address = self.process.line_with("Console and HTTP at").split("at ")[1].split()[0].rstrip(".")

    def kill(self) -> None:
        """Kill it the hard way, and start it again."""
        self.process.kill()
        self.start()

    def token(self) -> str:
        """A bearer token of the operator."""
        line = [sys.executable, "-m", "pointsman.cli", "token"]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout.split()[-1]


def inspect(commands: Path, here: ControlPlane) -> dict[str, Any]:
    """What the Inspector finds over both transports: every tool, and a decision of the router."""
    own = ["-e", f"POINTSMAN_DATA={here.environment['POINTSMAN_DATA']}", sys.executable, "-m", "pointsman.cli", "mcp"]
    over_http = [f"{here.address}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {here.token()}"]
    row: dict[str, Any] = {"client": "inspector"}
    for transport, target in (("stdio", own), ("http", over_http)):
        listed = _inspector(commands, here, [*target, "--method", "tools/list"])
        row[f"{transport}_tools"] = len(listed["tools"])
        called = [
            *target,
            "--method",
            "tools/call",
            "--tool-name",
            "route",
            "--tool-arg",
            "message=fix the lexer in src/lexer.py",
        ]
        row[f"{transport}_route"] = _inspector(commands, here, called)["structuredContent"]["mode"]
    row["proved"] = (row["stdio_tools"], row["http_tools"]) == (12, 12) and row["http_route"] == "ACTION"
    return row


def _inspector(commands: Path, here: ControlPlane, arguments: list[str]) -> dict[str, Any]:
    line = [str(commands / "mcp-inspector"), "--cli", *arguments]
    done = subprocess.run(
        line, env=here.environment, capture_output=True, text=True, timeout=SESSION_SECONDS, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(line)}\n{done.stdout}\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return found


def script(kill: Callable[[], None]) -> Callable[[str, Any], Say]:
    """What the model says: hand in, wait, (here everything dies,) answer, wait, deliver."""
    killed: list[bool] = []

    def answer(_agent: str, body: Any) -> Say:
        asked = asked_in(body)
        if f"{TOOL}submit_run" not in asked.tools:
            return Say(f"no tools of ours among {sorted(asked.tools)}")
        found = _RUN_ID.findall("".join(asked.answers))
        run = {"run_id": found[0] if found else ""}
        if len(asked.answers) == 2 and not killed:
            killed.append(True)
            kill()
        steps = [
            Say(tool=f"{TOOL}submit_run", arguments={"message": "fix something", "request_id": "once"}),
            Say(tool=f"{TOOL}get_run", arguments={**run, "wait_seconds": 30}),
            Say(tool=f"{TOOL}answer", arguments={**run, "answer": "clarified", "text": "the test in src/parser.py"}),
            *(Say(tool=f"{TOOL}get_run", arguments={**run, "wait_seconds": 30}) for _ in range(12)),
        ]
        if len(asked.answers) > 3 and '\\"ended\\":true' in asked.answers[-1]:
            return Say(tool=f"{TOOL}deliver", arguments=run)
        is_home = any('\\"outcome\\":\\"COMPLETE\\"' in one for one in asked.answers)
        return Say("It is delivered.") if is_home else steps[min(len(asked.answers), len(steps) - 1)]

    return answer


def play(commands: Path, folder: Path, here: ControlPlane, server: Model) -> dict[str, Any]:
    """One session of the real Claude Code with our plugin's server."""
    settings = {
        "mcpServers": {
            "pointsman": {"command": sys.executable, "args": ["-m", "pointsman.cli", "mcp"], "env": here.environment}
        }
    }
    (folder / "mcp.json").write_text(json.dumps(settings))
    (folder / "work").mkdir()
    variables = {
        **here.environment,
        "PATH": os.pathsep.join((str(commands), os.environ["PATH"])),
        "ANTHROPIC_BASE_URL": f"{server.url}/claude",
        "ANTHROPIC_API_KEY": KEY,
        "ENABLE_TOOL_SEARCH": "false",
        "MCP_CONNECTION_NONBLOCKING": "false",
        "MCP_TIMEOUT": "60000",
    }
    line = [
        str(commands / "claude"), "-p", "hand this to the swarm: fix something", "--mcp-config", str(folder / "mcp.json"),
        "--strict-mcp-config", "--allowedTools", "mcp__pointsman",
    ]  # fmt: skip
    done = subprocess.run(
        line, cwd=folder / "work", env=variables, capture_output=True, text=True, timeout=SESSION_SECONDS, check=False
    )
    row = {"client": "claude", "version": version(commands, "claude", variables), "asked": len(server.heard)}
    row["proved"] = done.returncode == 0 and "It is delivered." in done.stdout
    if not row["proved"]:
        print("\n".join((done.stdout, done.stderr, *server.heard)), file=sys.stderr)
    return row


def main(environment: str) -> None:
    """Play both; end with 1 if one that can be had does not succeed."""
    failed = []
    for name in PACKAGES:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch).resolve()
            try:
                commands = commands_of(name, Path(environment).resolve())
            except Unavailable as reason:
                print(json.dumps({"client": name, "proved": None, "SKIPPED": str(reason)}), flush=True)
                continue
            here = ControlPlane(folder)
            try:
                with model(script(here.kill)) as server:
                    row = inspect(commands, here) if name == "inspector" else play(commands, folder, here, server)
            finally:
                here.process.kill()
        print(json.dumps(row), flush=True)
        failed += [] if row["proved"] else [name]
    if failed:
        sys.exit(f"not brought home: {', '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
