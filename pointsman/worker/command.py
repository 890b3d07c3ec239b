"""The command agent: runs a command-line agent once per assignment, in folders of its own, and reads its files."""

import os
import re
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from pointsman._shared.search_path import search_path
from pointsman._shared.system_time import now_seconds
from pointsman.acp.order import Order
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.profiles import Profile, PromptBy
from pointsman.project import InvalidProjectFile
from pointsman.project.includes import IncludeTooLarge
from pointsman.project.setup_run import SetupFailed
from pointsman.sandbox import (
    CommandResult,
    EndedBy,
    Level,
    Limits,
    SandboxSpec,
    available_level,
    clean_environment,
    failed_service,
    run,
    toolchain_folders,
)
from pointsman.usage.limits import limit_in
from pointsman.usage.output import AgentOutput
from pointsman.worker import handoff as files
from pointsman.worker import output_reader
from pointsman.worker.acp_command import ACP, bridged
from pointsman.worker.agent_environment import AgentBase, AgentEnvironment, set_up_tree
from pointsman.worker.commit_message import work_message
from pointsman.worker.git import Clone, GitFailed, text
from pointsman.worker.job_usage import read_usage
from pointsman.worker.json_files import InvalidFile
from pointsman.worker.judged_tree import files_of, judged_tree
from pointsman.worker.login import private_home
from pointsman.worker.own_program import LIBRARY, make_command, own_program
from pointsman.worker.permissions import PermissionDesk
from pointsman.worker.ports import NoPorts, lease_services
from pointsman.worker.prompt import is_judge, prompt_for
from pointsman.worker.provider_limits import limit_message
from pointsman.worker.sdk import GiveUp, Job, LimitReached, log
from pointsman.worker.sessions import HOME, Sessions
from pointsman.worker.snapshots import snapshots_sent
from pointsman.worker.survey import survey_of
from pointsman.worker.verifier import BUNDLE_TYPE
from pointsman.worker.workspace import AssignmentFolders, Workspace, fetch_result

MARKER = b"PIPELINE_ROUTE"
MAX_TRANSCRIPT = 1_000_000
MAX_PROMPT_ARGUMENT = 100_000
MAX_PATH = 4096
MAX_EXCERPT = 2000
DIFF_TYPE = "text/x-diff"
MAX_DIFF_BYTES = 1024 * 1024
UNREAD_TYPES = (BUNDLE_TYPE, DIFF_TYPE)
"""Artifacts that an agent is given in another form: the checked-out tree."""
HANDOFF_INSIDE = ".pointsman-handoff"
_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{(prompt|prompt_file|handoff|worktree|sandbox)\}")


class CommandAgent:
    """Runs one profile's command for every assignment it is given."""

    def __init__(self, workspace: Workspace, profile: Profile, limits: Limits | None = None) -> None:
        self._workspace = workspace
        self._profile = profile
        self._limits = limits or Limits()

    async def work(self, job: Job) -> Message:
        """Does an assignment of any purpose but VERIFY; invalid output is a failed attempt with its reason."""
        async with self._workspace.folders(job, self._sessions(job)) as folders:
            held = ExitStack()
            try:
                clone, judged = await self._check_out(job, folders)
                environment = await self._set_up(job, folders, clone, held)
                visible = self._with_handoff_inside(folders)
                contents = files.handoff_files(job.lease, await _artifact_texts(job)) + judged
                contents += await _survey(job, clone)
                prompt = prompt_for(job.lease, visible.handoff, [files.THE_PROMPT, *contents])
                files.write_handoff(visible.handoff, prompt, contents)
                files.write_by_products(visible.handoff, environment.made)
                seen = clone if _writes(job) else None
                async with (
                    private_home(self._profile, folders.scratch / HOME, self._workspace.locks),
                    snapshots_sent(job, seen, folders.tree, (*environment.made, HANDOFF_INSIDE)),
                ):
                    ended, output = await self._run(job, visible, prompt, environment)
                log.info("%s: the command of %s ended: %s", job.agent_id, job.assignment.id, ended.notes)
                _move_handoff_out(visible, folders)
                read_usage(job, folders.handoff, output)
                self._require_success(ended, output)
                folders.remove_leftovers(self._profile.leftovers)
                return await self._read_output(job, folders, clone, output)
            except (SetupFailed, IncludeTooLarge, InvalidProjectFile) as error:
                raise GiveUp(str(error), permanent=True) from None
            except (InvalidFile, GitFailed, NoPorts) as error:
                raise GiveUp(str(error)) from None
            finally:
                held.close()

    def _sessions(self, job: Job) -> Sessions | None:
        """Where sessions of its agent are looked for; only who writes goes on with one, for judges begin anew."""
        return Sessions(job.assignment.id, self._profile) if self._profile.protocol == ACP and _writes(job) else None

    async def _run(
        self, job: Job, folders: AssignmentFolders, prompt: str, environment: AgentEnvironment
    ) -> tuple[CommandResult, AgentOutput]:
        """Runs the command; its output is read as it arrives and shown to people."""
        spec = self._sandbox_spec(job, folders, prompt, environment)
        async with PermissionDesk(job, folders.answers).open() as desk:

            def hear(event: dict[str, Any]) -> None:
                desk.hear(event)
                if (sessions := self._sessions(job)) and environment.keeps_session:
                    sessions.note(folders.place, event)

            output = AgentOutput(self._profile.output, job.transcript.write, on_event=hear)
            ended = await run(replace(spec, on_output=output.write, clock=desk.clock))
            output.close()
        return ended, output

    async def _set_up(
        self, job: Job, folders: AssignmentFolders, clone: Clone | None, held: ExitStack
    ) -> AgentEnvironment:
        """Sets the tree up as the project file of the run says; its ports are held as long as the assignment."""
        if clone is None:
            return AgentEnvironment()
        workspace = self._workspace
        head = job.assignment.repository.base_commit
        if not folders.session:  # the repository of a tree that an agent had is the agent's
            head = await text(folders.tree, "rev-parse", "HEAD")
        project = await workspace.project_of(job, clone)
        commit = (
            await workspace.submitted_commit(job, clone) if is_judge(job.lease) and project.workspace.setup else head
        )
        accepted = job.assignment.repository.base_commit
        base = AgentBase(clone.path, commit, accepted, project, workspace.user_folder(job))
        async with files_of(clone, folders.tree, commit, head):
            made = await set_up_tree(base, folders.tree, folders.scratch, workspace.root, workspace.private_places)
        if project.workspace.setup:  # what it changed of tracked files is nobody's work, and no proof sees it
            await clone.restore_files(folders.tree, head)
        leased = held.enter_context(lease_services(base.project.workspace))
        return replace(made, variables={**made.variables, **leased.variables}, services=leased.services)

    async def _check_out(self, job: Job, folders: AssignmentFolders) -> tuple[Clone | None, list[files.HandoffFile]]:
        """Checks out the tree to work on: a coder's result for judges, the work before it for writers, or the base."""
        if not self._workspace.has_repository(job):
            folders.tree.mkdir()
            return None, []
        clone = await self._workspace.clone_for(job)
        commit = job.assignment.repository.base_commit
        made = getattr(job.work, "coder_result", None)
        if made is not None and made.result_commit and not _writes(job):
            await fetch_result(job, clone, made)
            judged = await judged_tree(clone, await self._workspace.submitted_commit(job, clone), made.result_commit)
            await clone.check_out(judged.commit, folders.tree)
            return clone, judged.files()
        first = getattr(job.work, "first", None)
        if first is not None and first.result_commit and _writes(job):
            await fetch_result(job, clone, first)
            commit = first.result_commit
        if not folders.session:
            await clone.check_out(commit, folders.tree)
        return clone, []

    def _with_handoff_inside(self, folders: AssignmentFolders) -> AssignmentFolders:
        """Puts the handoff folder inside the working tree for agents that write nowhere else."""
        if not self._profile.handoff_inside:
            return folders
        inside = folders.tree / HANDOFF_INSIDE
        if inside.exists():
            raise InvalidFile(
                f"the repository has a {HANDOFF_INSIDE} of its own, where this agent's handoff folder goes"
            )
        inside.mkdir()
        return replace(folders, handoff=inside)

    def _sandbox_spec(
        self, job: Job, folders: AssignmentFolders, prompt: str, environment: AgentEnvironment
    ) -> SandboxSpec:
        prompt_file = folders.handoff / files.PROMPT
        values = {
            "{prompt}": prompt if len(prompt) <= MAX_PROMPT_ARGUMENT else f"Do what {prompt_file} asks for.",
            "{prompt_file}": str(prompt_file),
            "{handoff}": str(folders.handoff),
            "{worktree}": str(folders.tree),
            "{sandbox}": self._profile.sandbox[available_level() > Level.NONE],
        }
        command = [_PLACEHOLDER.sub(lambda found: values[found[0]], word) for word in self._profile.command]
        variables = _variables(job, folders, environment)
        if self._profile.protocol == ACP:
            places = tuple(map(str, (folders.tree, folders.handoff, folders.scratch)))
            order = Order(places, str(folders.answers), environment.ask_before, folders.session)
            command = bridged(command, order, folders.scratch / LIBRARY)
        job.transcript.hide(os.environ.get(name, "") for name in self._profile.environment if _SECRET_NAME.search(name))
        return SandboxSpec(
            command,
            folders.tree,
            clean_environment(variables, self._profile.environment),
            writable=(folders.tree, folders.handoff, folders.scratch),
            readable=(
                *own_program(),
                *toolchain_folders().values(),
                *self._named_places(command),
                *map(Path, self._profile.readable),
                *environment.readable,
                folders.answers,
            ),
            hidden=self._workspace.private_places,
            network=True,
            stdin=prompt_file if self._profile.prompt is PromptBy.STDIN else Path(os.devnull),
            limits=self._limits,
            services=environment.services,
        )

    def _named_places(self, command: Iterable[str]) -> list[Path]:
        """What a command line names in full, such as the script that it runs; never a folder that holds private places."""
        private = (Path.home(), *self._workspace.private_places)
        named = [Path(word) for word in command if word.startswith("/") and len(word) < MAX_PATH]
        return [
            path
            for path in named
            if os.access(path, os.F_OK) and not any(place.is_relative_to(path) for place in private)
        ]

    def _require_success(self, ended: CommandResult, output: AgentOutput) -> None:
        """Gives up on a command that failed; a limit of the model's provider is no failure of its own."""
        if ended.ended_by is EndedBy.ITSELF and ended.exit_code in self._profile.success:
            return
        if why := failed_service(ended):
            raise GiveUp(why, permanent=True)
        limit = limit_in(output.failures, datetime.fromtimestamp(now_seconds(), UTC)) if self._profile.output else None
        if limit is not None:
            raise LimitReached(f"the provider of {self._profile.name} refuses: {limit.line}", limit_message(limit))
        reason = ended.reason or f"it ended with exit code {ended.exit_code}"
        printed = "\n".join(output.failures)[-MAX_EXCERPT:] if self._profile.output else ended.excerpt()
        raise GiveUp(f"the agent's command failed: {reason} ({ended.notes})\n{printed}".strip())

    async def _read_output(
        self, job: Job, folders: AssignmentFolders, clone: Clone | None, output: AgentOutput
    ) -> Message:
        purpose, folder = job.assignment.purpose, folders.handoff
        if purpose == assignments.PURPOSE_STAGE:
            made = await _coder_result(job, folders, clone) if _writes(job) else None
            return _stage_result(folders, made, output, job)
        return _OUTPUT_READERS[purpose](folder, job)  # type: ignore[no-any-return]


def _writes(job: Job) -> bool:
    return job.assignment.capability in (assignments.CAPABILITY_CODE, assignments.CAPABILITY_RESOLVE)


def _variables(job: Job, folders: AssignmentFolders, environment: AgentEnvironment) -> dict[str, str]:
    assignment = job.assignment
    path = environment.variables.get("PATH") or search_path()
    return {
        **environment.variables,
        **{name: str(folder) for name, folder in toolchain_folders().items()},
        "PATH": os.pathsep.join((str(make_command(folders.scratch)), path)),
        "HOME": str(folders.scratch / HOME),
        "TMPDIR": str(folders.scratch),
        "PYTHONDONTWRITEBYTECODE": "1",
        "POINTSMAN_HANDOFF": str(folders.handoff),
        "POINTSMAN_WORKTREE": str(folders.tree),
        "POINTSMAN_RUN_ID": assignment.run_id,
        "POINTSMAN_TASK_ID": assignment.task_id,
        "POINTSMAN_STAGE": assignment.stage,
        "POINTSMAN_ATTEMPT": str(_attempt(job)),
        "POINTSMAN_NONCE": _nonce(job),
        "TRACEPARENT": job.traceparent or assignment.traceparent,
    }


def _attempt(job: Job) -> int:
    """The number of this attempt at the task over the whole run; work without a task has its own numbers."""
    work = getattr(job.lease, str(job.lease.WhichOneof("work")))
    task = getattr(getattr(work, "handoff", None), "master_task", None)
    return (task.attempt if task else 0) or job.assignment.attempt


def _nonce(job: Job) -> str:
    """What a route marker of this stage has to carry; a judge has none, since no marker of its output counts."""
    return str(job.work.nonce) if job.assignment.purpose == assignments.PURPOSE_STAGE else ""


def _move_handoff_out(visible: AssignmentFolders, folders: AssignmentFolders) -> None:
    """Moves the handoff folder out of the working tree, which then holds only the work."""
    if visible.handoff == folders.handoff:
        return
    if visible.handoff.is_symlink() or not visible.handoff.is_dir():
        raise InvalidFile(f"{HANDOFF_INSIDE}: is no folder any more")
    folders.handoff.rmdir()
    visible.handoff.rename(folders.handoff)


async def _survey(job: Job, clone: Clone | None) -> list[files.HandoffFile]:
    """A survey for a planner; others have research, or the task, to start from."""
    if clone is None or job.assignment.purpose not in (assignments.PURPOSE_PLAN, assignments.PURPOSE_PATCH):
        return []
    return [files.survey_file(await survey_of(clone, job.assignment.repository.base_commit))]


async def _artifact_texts(job: Job) -> dict[str, str]:
    """The texts of all artifacts that the handoff names."""
    wanted = {ref.sha256: ref for ref in _artifacts(job.work) if ref.media_type not in UNREAD_TYPES}
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


async def _coder_result(job: Job, folders: AssignmentFolders, clone: Clone | None) -> handoff.CoderResult:
    """Reads the coder's files, commits its tree, and stores the bundle at the control plane."""
    if clone is None:
        raise GiveUp("a coder needs a repository; submit the run with one", permanent=True)
    base = job.assignment.repository.base_commit
    claims = output_reader.read_list(folders.handoff, files.CLAIMS, handoff.Claim)
    message = work_message(job.assignment.run_id, job.work.handoff.master_task, claims)
    left_out = output_reader.by_products(folders.handoff)
    captured = await clone.capture(folders.tree, base, job.agent_id, left_out, message)
    await clone.require_bounds(captured.commit, base)
    criteria = {item.id for item in job.work.handoff.acceptance_criteria}
    result = output_reader.coder_result(folders.handoff, folders.tree, captured, criteria)
    body = await clone.make_bundle(base, captured.commit)
    if body:
        run_id, diff = job.assignment.run_id, bounded_diff(await clone.readable_diff(base, captured.commit))
        result.bundle.CopyFrom(await job.client.artifacts.put(body, BUNDLE_TYPE, run_id))
        result.diff.CopyFrom(await job.client.artifacts.put(diff, DIFF_TYPE, run_id))
    return result


def bounded_diff(diff: bytes) -> bytes:
    """A diff that people can read: whole lines, a mebibyte at the most."""
    return diff if len(diff) <= MAX_DIFF_BYTES else diff[: diff.rfind(b"\n", 0, MAX_DIFF_BYTES) + 1]


def _stage_result(
    folders: AssignmentFolders, made: handoff.CoderResult | None, output: AgentOutput, job: Job
) -> Message:
    """The result of a stage: of a judge its decision alone; of others the route file, a marker, or the work itself."""
    folder = folders.handoff
    if is_judge(job.lease):
        return output_reader.review_decision(folder, handoff.REVIEW_LEVEL_EXECUTOR)
    if (folder / files.ROUTE).exists():
        route = output_reader.read_message(folder, files.ROUTE, work.StageRoute())
        return work.StageResult(route=route, coder_result=made)
    nonce, said = _nonce(job).encode(), output.said.replace(job.work.directive.encode(), b"")
    if nonce and MARKER in said and nonce in said:
        transcript = said[-MAX_TRANSCRIPT:].decode(errors="replace").replace("\0", "")
        return work.StageResult(transcript=transcript, coder_result=made)
    if made is not None:
        return made
    return handoff.DetailDesign(design_md=output_reader.document(folder, files.DESIGN))


_OUTPUT_READERS: dict[assignments.Purpose.ValueType, Any] = {
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
