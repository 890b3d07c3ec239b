"""What `pointsman run` asks of the proof: tests that must be fixed, checks that no agent sees, a grade."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from pointsman.api.handoff.v1.proof_pb2 import Grade
from pointsman.api.orchestrator.v1.run_pb2 import ProofTerms
from pointsman.cli.options.order_options import Requirement
from pointsman.cli.options.usage import fail_usage
from pointsman.client import Client, Order
from pointsman.proof.baseline import Baseline
from pointsman.proof.held_out import NoChecks, read_held_out
from pointsman.worker.delivery_terms import ARCHIVE_TYPE, pack_checks
from pointsman.worker.git import GitFailed, git, text

SHOWN_RED = 20


@dataclass(frozen=True, slots=True)
class TermOptions:
    """The options as they were given."""

    fixes: tuple[str, ...] = ()
    verify_from: str = ""
    require: Requirement | None = None
    tests_may_change: bool = False

    def message(self) -> ProofTerms | None:
        """The terms as Submit takes them, without the held-out checks; None where nothing is asked."""
        if not (self.fixes or self.require or self.tests_may_change or self.verify_from):
            return None
        required = Grade.Value(f"GRADE_{self.require.upper()}") if self.require else Grade.GRADE_UNSPECIFIED
        return ProofTerms(fixes=self.fixes, require_grade=required, tests_may_change=self.tests_may_change)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Held-out checks by their path in the tree."""

    checks: Mapping[str, bytes] = field(default_factory=dict)

    async def upload(self, client: Client, order: Order) -> Order:
        """The order with its checks, stored where operators and verifiers alone can read them."""
        if not self.checks or order.proof_terms is None:
            return order
        terms = ProofTerms()
        terms.CopyFrom(order.proof_terms)
        terms.held_out.CopyFrom(await client.artifacts.put(pack_checks(self.checks), ARCHIVE_TYPE, held_out=True))
        return replace(order, proof_terms=terms)


async def read_checks(verify_from: str, folder: Path | None, order: Order) -> HeldOut:
    """Reads --verify-from; ends the command where there are none, or where agents would see them in the base."""
    if not verify_from:
        return HeldOut()
    if folder is None or order.repository is None or not order.verify_commands:
        fail_usage("--verify-from needs a repository and a command that proves the work (--verify)")
    try:
        checks = await read_held_out(verify_from, folder)
    except NoChecks as error:
        fail_usage(f"--verify-from: {error}")
    base = order.repository.base_commit
    if await _is_reached(verify_from, folder, base):
        fail_usage(
            f"--verify-from: agents would see {verify_from}, because the commit that the run starts from reaches it; "
            "keep the checks in a folder outside of the repository, or on a branch of their own"
        )
    return HeldOut(checks)


async def _is_reached(verify_from: str, folder: Path, base: str) -> bool:
    """Whether the history of the base, which agents get, holds the checks."""
    inside = _place_inside(verify_from, await text(folder, "rev-parse", "--show-toplevel"))
    if inside is not None:
        return bool(inside and await git(folder, "ls-tree", "-r", "--name-only", base, "--", f"{inside}/"))
    try:
        await git(folder, "merge-base", "--is-ancestor", verify_from.partition(":")[0] or "HEAD", base)
    except GitFailed:
        return False
    return True


def _place_inside(verify_from: str, top: str) -> str | None:
    """Where in the repository a folder of checks is, empty for one outside of it; None for `REF:PATH`."""
    place, root = Path(verify_from).resolve(), Path(top).resolve()
    if not place.is_dir():
        return None
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else ""


def require_red(fixes: Sequence[str], baseline: Baseline | None) -> None:
    """Ends the command where a test of --fixes does not fail on the base: nothing could show that it was fixed."""
    if not fixes:
        return
    if baseline is None:
        fail_usage("--fixes needs the baseline: a repository, a command that proves the work, and no --no-baseline")
    red = sorted({test for command in baseline.commands for test in command.red})
    for wanted in fixes:
        if wanted not in red:
            near = get_close_matches(wanted, red, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            fail_usage(f"--fixes: '{wanted}' does not fail on the base{hint} {_listed(red)}")


def _listed(red: Sequence[str]) -> str:
    if not red:
        return "No test that can be named fails there."
    more = f" and {len(red) - SHOWN_RED} more" if len(red) > SHOWN_RED else ""
    return f"Red on the base: {', '.join(red[:SHOWN_RED])}{more}"
