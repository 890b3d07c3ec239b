"""What the last work of a run has to show: fixed tests, and held-out checks that no agent gets."""

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.proof.held_out import MAX_BYTES, MAX_FILES, NoChecks
from pointsman.proof.prover import Proof
from pointsman.worker.sdk import GiveUp, Job

ARCHIVE_TYPE = "application/x-tar"
OUTPUT_TYPE = "text/plain"
MAX_OUTPUT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Terms:
    """What a proof has to show besides its commands; `digest` stands for the held-out checks."""

    fixes: tuple[str, ...] = ()
    held_out: Mapping[str, bytes] = field(default_factory=dict)
    digest: str = ""


NO_TERMS = Terms()


async def read_terms(job: Job, request: work.VerifyRequest) -> Terms:
    """The terms of a request, with the held-out checks from the control plane."""
    given = request.delivery_terms
    if not given.HasField("held_out"):
        return Terms(tuple(given.fixes))
    try:
        checks = unpack_checks(await job.client.artifacts.get(given.held_out))
    except NoChecks as error:
        raise GiveUp(f"the held-out checks cannot be read: {error}", permanent=True) from None
    return Terms(tuple(given.fixes), checks, given.held_out.sha256)


def pack_checks(checks: Mapping[str, bytes]) -> bytes:
    """A tar archive of checks; the same checks make the same archive."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(checks.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return body.getvalue()


def unpack_checks(body: bytes) -> dict[str, bytes]:
    """The checks of an archive: plain files below the top of the tree, no more than may be laid over one."""
    found: dict[str, bytes] = {}
    room = MAX_BYTES
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:") as archive:
            for entry in archive:
                room -= entry.size
                if room < 0 or len(found) >= MAX_FILES:
                    raise NoChecks(f"the archive holds more than {MAX_FILES} files or {MAX_BYTES} bytes")
                content = archive.extractfile(entry) if entry.isreg() and _is_below(entry.name) else None
                if content is None:
                    raise NoChecks("the archive holds something else than files below the top of the tree")
                found[entry.name] = content.read()
    except (tarfile.TarError, EOFError) as error:
        raise NoChecks(f"it is no tar archive ({error})") from None
    return found


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and not {"..", ".git"} & set(path.parts)


async def keep_output(job: Job, proof: Proof) -> handoff.ArtifactRef | None:
    """Stores what the held-out checks printed, for operators and verifiers alone; None where none ran."""
    printed = [facts.held_out.result.output for facts in proof.commands if facts.held_out is not None]
    if not printed:
        return None
    body = b"\n".join(printed)[-MAX_OUTPUT:] or b"\n"
    return await job.client.artifacts.put(body, OUTPUT_TYPE, job.assignment.run_id, held_out=True)
