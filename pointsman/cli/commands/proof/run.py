"""`pointsman proof run`: two proofs of a change, with a verdict and an exit code."""

import asyncio
import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.commands.proof.options import AsJson, BaseRef, RepoAt, TreeRef, Verify
from pointsman.cli.exit_codes import EXIT_FAILED, EXIT_WAITS_FOR_PERSON
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.render.proof_lines import proof_lines
from pointsman.cli.session.checkout_space import checkout_notes_on_size
from pointsman.cli.session.project_check import NOT_TRIED
from pointsman.cli.session.proof_session import ProofSession, open_session, private_repository
from pointsman.cli.session.workers import worker_root
from pointsman.project.detection import checkout_notes
from pointsman.proof.execution import CommandRunner
from pointsman.proof.held_out import NoChecks, read_held_out
from pointsman.proof.prover import Proof, ProofRequest, Prover
from pointsman.proof.summary import to_junit, to_values
from pointsman.proof.verdict import Decision, Grade, Wishes
from pointsman.worker.base_project import source_at
from pointsman.worker.proof_environment import DeliveryNotInstallable, ProofBase, ProofEnvironments, pairs_after_seconds

EXIT_CODES = {Decision.ACCEPTED: 0, Decision.REFUSED: EXIT_FAILED, Decision.ASKED: EXIT_WAITS_FOR_PERSON}


def run(  # noqa: PLR0913 - each is an option
    *,
    base: BaseRef = "",
    tree: TreeRef = "",
    repo: RepoAt = None,
    verify: Verify = [],  # noqa: B006 - typer reads it and never changes it
    verify_from: Annotated[
        str, typer.Option(metavar="DIR|REF:PATH", help="Held-out checks, laid over the tree at proof time only.")
    ] = "",
    fixes: Annotated[
        list[str], typer.Option(metavar="ID", help="A test that fails on the base and must pass now; repeatable.")
    ] = [],  # noqa: B006
    tests_may_change: Annotated[
        bool, typer.Option(help="What fails with the base's tests is asked, not refused.")
    ] = False,
    require: Annotated[Grade, typer.Option(help="The least grade that is accepted.")] = Grade.NONE,
    repeat: Annotated[int, typer.Option(min=0, help="How often the base's tests run; 0 takes pointsman.toml's.")] = 0,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.")] = None,
    as_json: AsJson = False,
) -> None:
    """Prove the working tree or a branch: 0 accepted, 1 refused, 4 somebody else has to say yes, 2 wrong use."""
    wishes = Wishes(fixes=tuple(fixes), tests_may_change=tests_may_change)
    proof = asyncio.run(_prove((repo, base, tree, tuple(verify)), wishes, verify_from, repeat))
    if junit is not None:
        junit.write_bytes(to_junit(proof))
    if as_json:
        print(json.dumps(to_values(proof), ensure_ascii=False))
    else:
        print("\n".join(proof_lines(proof)))
    code = EXIT_CODES[proof.verdict.decision]
    if code == 0 and list(Grade).index(proof.verdict.grade) < list(Grade).index(require):
        print(f"pointsman: the grade is {proof.verdict.grade}, and {require} is required", file=sys.stderr)
        code = EXIT_WAITS_FOR_PERSON
    sys.exit(code)


async def _prove(
    place: tuple[Path | None, str, str, tuple[str, ...]], wishes: Wishes, verify_from: str, repeat: int
) -> Proof:
    repo, base, tree, verify = place
    session = await open_session(repo, base, tree, verify)
    held_out = await _held_out(session, verify_from)
    wishes = Wishes(wishes.fixes, wishes.tests_may_change, tuple(held_out))
    request = ProofRequest(
        base=session.base,
        delivered=session.delivered,
        commands=session.commands,
        protect=session.section.protect,
        wishes=wishes,
        held_out=held_out,
        repeat=repeat or session.section.repeat,
    )
    async with private_repository(session.folder) as (repository, work):
        root = worker_root()
        proven = ProofBase(repository, session.base, session.project, session.folder)
        furnish = ProofEnvironments(root, (session.folder, root.parent)).furnisher(
            proven, partial(print, file=sys.stderr)
        )
        try:
            await _say_notes(session)
            runner = CommandRunner(repository, work, furnish, pairs_after_seconds(session.project))
            return await Prover(repository, runner).prove(request)
        except DeliveryNotInstallable as error:
            print(f"pointsman: {error}", file=sys.stderr)
            sys.exit(EXIT_FAILED)
        except NOT_TRIED as error:
            fail_usage(str(error))


async def _say_notes(session: ProofSession) -> None:
    """Says what of the tree a proof does not see, and how large it is."""
    notes = await checkout_notes(await source_at(session.folder, session.delivered))
    for note in (*notes, *await checkout_notes_on_size(session.folder, session.delivered)):
        print(note, file=sys.stderr)


async def _held_out(session: ProofSession, verify_from: str) -> dict[str, bytes]:
    if not verify_from:
        return {}
    try:
        return await read_held_out(verify_from, session.folder, session.base)
    except NoChecks as error:
        fail_usage(f"--verify-from: {error}")
