"""Continues a run in a background process with its own control plane, workers and log."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pointsman
from pointsman._shared.files import make_private_folder
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.session.follow import program
from pointsman.cli.session.worker_specs import LocalWorkers
from pointsman.services.chassis.core.config import StoreSettings, load

START_SECONDS = 30.0
STEP_SECONDS = 0.05


async def continue_in_background(run_id: str, workers: LocalWorkers) -> int:
    """Starts the background process; once it works, prints where its log is and how to stop it."""
    data = load(StoreSettings).directory.resolve()
    log = data / "detached" / f"{run_id}.log"
    process = await asyncio.to_thread(_start, ("watch", run_id, *workers.options), data, log)
    if not await _is_working(process, log):
        print(f"pointsman: the run could not be left to the background: {log.read_text().strip()}", file=sys.stderr)
        print(f"Go on here: {workers.resume_command(run_id)}", file=sys.stderr)
        return EXIT_FAILED
    if workers.as_json:
        print(json.dumps({"run_id": run_id, "pid": process.pid, "log": str(log)}))
        return 0
    print(f"detached; process {process.pid} goes on with it: {program()} watch {run_id}, or look into {log}")
    print(f"  end the run: {program()} cancel {run_id}; let it wait: kill {process.pid}")
    return 0


def _start(arguments: tuple[str, ...], data: Path, log: Path) -> "subprocess.Popen[bytes]":
    make_private_folder(log.parent)
    root = str(Path(pointsman.__file__).parent.parent)
    code = f"import sys; sys.path.insert(0, {root!r}); from pointsman.cli.__main__ import main; main()"
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - our own command, by the interpreter that runs this one
            [sys.executable, "-c", code, *arguments],
            cwd=data,
            env={**os.environ, "POINTSMAN_DATA": str(data)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _log_says_working(log: Path) -> bool:
    return b"works on run_" in log.read_bytes()


async def _is_working(process: "subprocess.Popen[bytes]", log: Path) -> bool:
    """Whether the process reports that it works, before it ends or times out."""
    for _ in range(int(START_SECONDS / STEP_SECONDS)):
        if await asyncio.to_thread(_log_says_working, log):
            return True
        if process.poll() is not None:
            return False
        await asyncio.sleep(STEP_SECONDS)
    process.terminate()
    return False
