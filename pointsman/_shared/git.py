"""Runs git: no user configuration, no hooks, no prompts, a limit on time, and failures in words."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pointsman._shared.git_failures import NOT_INSTALLED, explain_failure, explain_timeout
from pointsman._shared.search_path import search_path

TIME_LIMIT_SECONDS = 300.0
SAFE = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "diff.ignoreSubmodules=all",
    "-c", "submodule.recurse=false", "-c", "gc.auto=0", "-c", "core.quotePath=false",
)  # fmt: skip


class GitFailed(Exception):
    """A git command failed, or its result is not acceptable."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of git: no user configuration, no prompts, messages in English."""
    return {
        "PATH": search_path(),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        "GIT_AUTHOR_NAME": "pointsman",
        "GIT_AUTHOR_EMAIL": "pointsman@localhost",
        "GIT_COMMITTER_NAME": "pointsman",
        "GIT_COMMITTER_EMAIL": "pointsman@localhost",
        **(extra or {}),
    }


async def git(
    folder: Path, *arguments: str, extra: Mapping[str, str] | None = None, stdin: bytes = b"", ok: Sequence[int] = (0,)
) -> bytes:
    """Runs git in a folder and returns its output; a failure says what happened and what to do."""
    try:
        process = await asyncio.create_subprocess_exec(
            "git", *SAFE, *arguments, cwd=folder, env=environment(extra), stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError as error:
        if error.filename == "git":
            raise GitFailed(NOT_INSTALLED) from None
        raise
    try:
        async with asyncio.timeout(TIME_LIMIT_SECONDS):
            output, errors = await process.communicate(stdin)
    except TimeoutError:
        with suppress(ProcessLookupError):  # it may have ended just now
            process.kill()
        await process.wait()
        raise GitFailed(explain_timeout(arguments, TIME_LIMIT_SECONDS)) from None
    except BaseException:
        if process.returncode is None:
            process.kill()
        raise
    if process.returncode not in ok:
        raise GitFailed(explain_failure(arguments, process.returncode or 0, errors.decode(errors="replace")))
    return output


async def text(folder: Path, *arguments: str, extra: Mapping[str, str] | None = None) -> str:
    """The output of git as one line of text."""
    return (await git(folder, *arguments, extra=extra)).decode(errors="replace").strip()
