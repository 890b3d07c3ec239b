"""Proves what a target would be: the tree of the last candidate over the tip, with the tip's own project file."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.excerpt import excerpt
from pointsman.landing.target import Blocked
from pointsman.project import InvalidProjectFile
from pointsman.project.includes import IncludeTooLarge
from pointsman.project.setup_run import SetupFailed
from pointsman.proof.execution import CommandRunner
from pointsman.proof.prover import Baselines, Proof, ProofRequest, Prover
from pointsman.proof.snapshot import Repository
from pointsman.proof.summary import runs_of
from pointsman.proof.verdict import Decision
from pointsman.worker.base_project import project_at
from pointsman.worker.proof_environment import DeliveryNotInstallable, ProofBase, ProofEnvironments, pairs_after_seconds
from pointsman.worker.survey import test_command_of

MAX_TEXT = 12_000
Commands = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a proof says about a tree."""

    ok: bool
    asks: tuple[str, ...] = ()
    """What somebody has to say yes to."""
    text: str = ""
    """Why it does not hold, with what was printed."""
    grade: str = ""
    summary: str = ""


class TreeProver:
    """Proves trees of one repository; what ran on a tree that landed is the next base's run."""

    def __init__(
        self, clone: Path, root: Path, user_folder: Path, scratch: Callable[[], AbstractContextManager[Path]]
    ) -> None:
        self._repository = Repository(clone)
        self._clone, self._user_folder = clone, user_folder
        self._scratch = scratch
        self._environments = ProofEnvironments(root, (root.parent, user_folder))
        self._baselines = Baselines()

    async def prove(self, base: str, tip: str) -> Outcome:
        """The proof of a commit over a base."""
        try:
            project = await project_at(self._clone, base)
        except InvalidProjectFile as error:
            raise Blocked(f"the project file of the target has problems: {error}") from None
        commands: Commands = tuple(tuple(command.arguments) for command in project.proof.verify)
        found = () if commands else await test_command_of(self._clone, base)
        commands = commands or ((tuple(found),) if found else ())
        if not commands:
            raise Blocked(
                "nothing says how this project is tested; name the command in [proof] verify of pointsman.toml"
            )
        request = ProofRequest(
            base=base, delivered=tip, commands=commands, protect=project.proof.protect, repeat=project.proof.repeat
        )
        proven = ProofBase(self._repository, base, project, self._user_folder)
        furnish = self._environments.furnisher(proven, lambda _said: None)
        with self._scratch() as folder:
            try:
                runner = CommandRunner(self._repository, folder / "work", furnish, pairs_after_seconds(project))
                proof = await Prover(self._repository, runner, self._baselines).prove(request)
            except DeliveryNotInstallable as error:
                return Outcome(ok=False, text=str(error))
            except (SetupFailed, IncludeTooLarge) as error:
                raise Blocked(f"the target cannot be set up for its proof: {error}") from None
        if proof.verdict.decision is not Decision.REFUSED:
            self._baselines.keep_accepted(proof)
        return _outcome(proof)


def _outcome(proof: Proof) -> Outcome:
    verdict = proof.verdict
    runs = [facts.restored for facts in proof.commands]
    ran = "; ".join(
        f"`{' '.join(run.command)}`: {len(run.report.executed)} tests, exit code {run.result.exit_code}" for run in runs
    )
    if verdict.decision is Decision.ACCEPTED:
        return Outcome(ok=True, grade=str(verdict.grade).upper(), summary=ran)
    if verdict.decision is Decision.ASKED:
        return Outcome(ok=False, asks=verdict.questions, grade=str(verdict.grade).upper(), summary=ran)
    why = [*verdict.reasons, *(one for failures in proof.failures.values() for one in failures)]
    printed = [
        run.result.output.decode(errors="replace")
        for facts in proof.commands
        for run in runs_of(facts)[1:]
        if not run.ended_well
    ]
    said = "\n".join(dict.fromkeys(why))
    return Outcome(ok=False, text=excerpt("\n\n".join((said, *printed[:2])), MAX_TEXT), summary=ran)
