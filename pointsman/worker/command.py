"""The command agent: any command-line agent, run once per assignment on a bench of its own, believed only by its files."""

import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

import pointsman
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Usage
from pointsman.profiles import Profile, PromptBy
from pointsman.worker import containment, output_reader, process_supervisor
from pointsman.worker import handoff as files
from pointsman.worker.containment import Ended, EndedBy, Limits
from pointsman.worker.git import Clone, GitFailed
from pointsman.worker.json_files import Unreadable
from pointsman.worker.prompt import prompt_for
from pointsman.worker.sdk import GiveUp, Job, log
from pointsman.worker.verifier import BUNDLE_TYPE
from pointsman.worker.workspace import Bench, Workshop, take_work

MARKER = b"PIPELINE_ROUTE"
MAX_TRANSCRIPT = 1_000_000
MAX_PROMPT_ARGUMENT = 100_000
HANDOFF_INSIDE = ".pointsman-handoff"
_PLACEHOLDER = re.compile(r"\{(prompt|prompt_file|handoff|worktree|sandbox)\}")


class CommandAgent:
    """Runs one profile's command for every assignment it is given."""

    def __init__(self, workshop: Workshop, profile: Profile, limits: Limits | None = None) -> None:
        self._workshop = workshop
        self._profile = profile
        self._limits = limits or Limits()

    async def work(self, job: Job) -> Message:
        """Do an assignment of any purpose but VERIFY; whatever is not as it must be is a failed attempt with its reason."""
        async with self._workshop.bench(job) as bench:
            try:
                clone = await self._check_out(job, bench)
                reach = self._within_reach(bench)
                prompt = prompt_for(job.lease, reach.handoff)
                files.write_handoff(reach.handoff, job.lease, prompt, await _bodies(job))
                ended = await containment.run(self._task(job, reach, prompt))
                if ended.strays:
                    log.warning("%s: left %d processes behind, which were killed", job.agent_id, ended.strays)
                _take_out_of_the_tree(reach, bench)
                _take_usage(job, bench)
                self._require_success(ended)
                _clear(bench.tree, self._profile.leftovers)
                return await self._collect(job, bench, clone, ended)
            except (Unreadable, GitFailed) as error:
                raise GiveUp(str(error)) from None

    async def _check_out(self, job: Job, bench: Bench) -> Clone | None:
        """The tree to work on: the coder's result for those who judge it, else the base."""
        if not self._workshop.has_repository(job):
            bench.tree.mkdir()
            return None
        clone = await self._workshop.clone_for(job)
        commit = job.assignment.repository.base_commit
        made = getattr(job.work, "coder_result", None)
        if made is not None and made.result_commit and not _writes(job):
            await take_work(job, clone, made)
            commit = made.result_commit
        await clone.check_out(commit, bench.tree)
        return clone

    def _within_reach(self, bench: Bench) -> Bench:
        """The bench of an agent that writes nowhere but in its working tree has the handoff folder there."""
        if not self._profile.handoff_inside:
            return bench
        inside = bench.tree / HANDOFF_INSIDE
        if inside.exists():
            raise Unreadable(
                f"the repository has a {HANDOFF_INSIDE} of its own, where this agent's handoff folder goes"
            )
        inside.mkdir()
        return replace(bench, handoff=inside)

    def _task(self, job: Job, bench: Bench, prompt: str) -> containment.Task:
        prompt_file = bench.handoff / files.PROMPT
        values = {
            "{prompt}": prompt[:MAX_PROMPT_ARGUMENT],
            "{prompt_file}": str(prompt_file),
            "{handoff}": str(bench.handoff),
            "{worktree}": str(bench.tree),
            "{sandbox}": self._profile.sandbox[process_supervisor.confines()],
        }
        command = [_PLACEHOLDER.sub(lambda found: values[found[0]], word) for word in self._profile.command]
        homes = [place for name in self._profile.writable if (place := _place(name))]
        variables = _variables(job, bench)
        if "HOME" in self._profile.environment:
            variables["HOME"] = str(Path.home())
        return containment.Task(
            command,
            bench.tree,
            containment.clean_environment(variables, self._profile.environment),
            (bench.tree, bench.handoff, bench.scratch, *homes),
            prompt_file if self._profile.prompt is PromptBy.STDIN else Path(os.devnull),
            self._limits,
        )

    def _require_success(self, ended: Ended) -> None:
        if ended.ended_by is not EndedBy.ITSELF or ended.exit_code not in self._profile.success:
            reason = ended.reason or f"it ended with exit code {ended.exit_code}"
            raise GiveUp(f"the agent's command failed: {reason}\n{ended.excerpt()}".strip())

    async def _collect(self, job: Job, bench: Bench, clone: Clone | None, ended: Ended) -> Message:
        purpose, folder = job.assignment.purpose, bench.handoff
        if purpose == assignments.PURPOSE_STAGE:
            made = await _made(job, bench, clone) if _writes(job) else None
            return _stage_result(bench, made, ended, job)
        return _COLLECT[purpose](folder, job)  # type: ignore[no-any-return]


def _take_usage(job: Job, bench: Bench) -> None:
    """What the work cost, where the agent says so; it counts even when the attempt fails."""
    if (bench.handoff / files.USAGE).exists():
        said = output_reader.read_message(bench.handoff, files.USAGE, Usage())
        job.usage.tokens, job.usage.cost_micros = max(said.tokens, 0), max(said.cost_micros, 0)


def _writes(job: Job) -> bool:
    return job.assignment.capability == assignments.CAPABILITY_CODE


def _variables(job: Job, bench: Bench) -> dict[str, str]:
    assignment = job.assignment
    return {
        "PATH": os.pathsep.join((str(_own_command(bench)), os.environ.get("PATH", os.defpath))),
        "HOME": str(bench.scratch),
        "TMPDIR": str(bench.scratch),
        "PYTHONDONTWRITEBYTECODE": "1",
        "POINTSMAN_HANDOFF": str(bench.handoff),
        "POINTSMAN_WORKTREE": str(bench.tree),
        "POINTSMAN_RUN_ID": assignment.run_id,
        "POINTSMAN_TASK_ID": assignment.task_id,
        "POINTSMAN_STAGE": assignment.stage,
        "POINTSMAN_ATTEMPT": str(_attempt(job)),
        "TRACEPARENT": job.traceparent or assignment.traceparent,
    }


def _attempt(job: Job) -> int:
    """The how-manieth attempt at the task it is, over the whole run; work that is on no task counts its own."""
    work = getattr(job.lease, str(job.lease.WhichOneof("work")))
    task = getattr(getattr(work, "handoff", None), "master_task", None)
    return (task.attempt if task else 0) or job.assignment.attempt


def _place(name: str) -> Path | None:
    """A place of the agent's own state, if its variable is set; a folder is made, because the agent itself could not."""
    filled = os.path.expandvars(name)
    if "$" in filled or not filled.strip("/"):
        return None
    place = Path(filled).expanduser()
    if name.endswith("/"):
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
    return place


def _take_out_of_the_tree(reach: Bench, bench: Bench) -> None:
    """Put a handoff folder that was inside the working tree beside it again; the tree then holds the work alone."""
    if reach.handoff == bench.handoff:
        return
    if reach.handoff.is_symlink() or not reach.handoff.is_dir():
        raise Unreadable(f"{HANDOFF_INSIDE}: is no folder any more")
    bench.handoff.rmdir()
    reach.handoff.rename(bench.handoff)


def _clear(tree: Path, leftovers: Iterable[str]) -> None:
    """Remove what the agent keeps for itself in its working tree: it is no part of the work."""
    for name in leftovers:
        place = tree / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)


def _own_command(bench: Bench) -> Path:
    """A folder with a `pointsman` command that works wherever Pointsman is installed, or is not."""
    folder = bench.scratch / "bin"
    folder.mkdir()
    script = folder / "pointsman"
    root = str(Path(pointsman.__file__).parent.parent)
    code = f"import sys; sys.path.insert(0, {root!r}); from pointsman.cli.__main__ import main; main()"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n')
    script.chmod(0o755)
    return folder


async def _bodies(job: Job) -> dict[str, str]:
    """The texts of all artifacts that the handoff names."""
    wanted = {ref.sha256: ref for ref in _artifacts(job.work) if not ref.media_type.endswith("bundle")}
    return {key: (await job.client.artifacts.get(ref)).decode(errors="replace") for key, ref in wanted.items()}


def _artifacts(message: Message) -> Iterable[handoff.ArtifactRef]:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        values: Iterable[Any] = (value,) if isinstance(value, Message) else value
        for one in values:
            if isinstance(one, handoff.ArtifactRef):
                yield one
            elif isinstance(one, Message):
                yield from _artifacts(one)


async def _made(job: Job, bench: Bench, clone: Clone | None) -> handoff.CoderResult:
    """The coder's files and tree, with the tree's bundle stored at the control plane."""
    if clone is None:
        raise GiveUp("a coder needs a repository; submit the run with one", permanent=True)
    base = job.assignment.repository.base_commit
    captured = await clone.capture(bench.tree, base, job.agent_id, output_reader.by_products(bench.handoff))
    await clone.require_bounds(captured.commit, base)
    criteria = {item.id for item in job.work.handoff.acceptance_criteria}
    result = output_reader.coder_result(bench.handoff, bench.tree, captured, criteria)
    body = await clone.make_bundle(base, captured.commit)
    if body:
        stored = await job.client.artifacts.put(body, BUNDLE_TYPE, job.assignment.run_id)
        result.bundle.CopyFrom(stored)
    return result


def _stage_result(bench: Bench, made: handoff.CoderResult | None, ended: Ended, job: Job) -> Message:
    """Where to go: the agent's own word where it left one; a coder's work alone means on; a judge must say."""
    folder = bench.handoff
    if (folder / files.ROUTE).exists():
        route = output_reader.read_message(folder, files.ROUTE, work.StageRoute())
        return work.StageResult(route=route, coder_result=made)
    if MARKER in ended.output:
        transcript = ended.output[-MAX_TRANSCRIPT:].decode(errors="replace").replace("\0", "")
        return work.StageResult(transcript=transcript, coder_result=made)
    if made is not None:
        return made
    if job.assignment.capability == assignments.CAPABILITY_REVIEW:
        return output_reader.review_decision(folder, handoff.REVIEW_LEVEL_EXECUTOR)
    return handoff.DetailDesign(design_md=output_reader.document(folder, files.DESIGN))


_COLLECT: dict[assignments.Purpose.ValueType, Any] = {
    assignments.PURPOSE_PLAN: lambda folder, _job: output_reader.plan(folder),
    assignments.PURPOSE_PATCH: lambda folder, _job: output_reader.plan(folder),
    assignments.PURPOSE_PLAN_ANSWER: lambda folder, _job: output_reader.read_message(
        folder, files.ANSWERS, work.FeedbackAnswers()
    ),
    assignments.PURPOSE_DEBATE: lambda folder, _job: output_reader.review_decision(
        folder, handoff.REVIEW_LEVEL_ORCHESTRATOR
    ),
    assignments.PURPOSE_RESEARCH: lambda folder, job: output_reader.research_report(
        folder, job.agent_id, job.work.slot.id
    ),
    assignments.PURPOSE_DESIGN: lambda folder, _job: handoff.DetailDesign(
        design_md=output_reader.document(folder, files.DESIGN)
    ),
    assignments.PURPOSE_REVIEW: lambda folder, _job: output_reader.review_decision(
        folder, handoff.REVIEW_LEVEL_EXECUTOR
    ),
}
