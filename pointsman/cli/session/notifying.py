"""The receivers of notices, as `[notify]` or the options of `pointsman notify` name them."""

import asyncio
import fcntl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.system_time import now_seconds
from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.cli.options.usage import fail_usage
from pointsman.client import Client
from pointsman.credentials.answer_link import LINK_SECONDS, OfferedAnswer, answer_link
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.notify.delivery import Channel
from pointsman.notify.follower import Follower
from pointsman.notify.notice import Offer, Receiver
from pointsman.notify.place import Place
from pointsman.notify.policy import Policy
from pointsman.project.model import NotifySection
from pointsman.services.chassis.core.config import StoreSettings, load

LOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Notifier:
    """Who is notified, when, and the file that says of what they were."""

    first: Channel
    second: Channel | None
    policy: Policy
    console: str
    path: Path
    offer: Offer | None = None

    async def follow(self, client: Client) -> None:
        """Notifies of every question; does not end. Of several processes with the same receiver one does, the others wait."""
        async with _alone(self.path):
            place = Place.read(self.path)
            await Follower(client, place, self.first, self.second, self.policy, self.console, self.offer).run()


@asynccontextmanager
async def _alone(path: Path) -> AsyncIterator[None]:
    """Holds the file of a notifier; a process that is killed lets go of it."""
    with path.with_suffix(".lock").open("ab") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(LOOK_SECONDS)
            else:
                break
        yield


def notifier_for(section: NotifySection, command: Sequence[str], project: str, *, with_answers: bool) -> Notifier:
    """The notifier of a section, or of a command beside or instead of its receiver.

    Only a receiver that the operator names gets links that answer: merged work may have changed the one of the file.
    """
    named = {Receiver.WEBHOOK: section.webhook, Receiver.SLACK: section.slack, Receiver.NTFY: section.ntfy}
    receiver, address = next(((kind, found) for kind, found in named.items() if found), (Receiver.WEBHOOK, ""))
    secret = _secret(section.secret_file) if section.secret_file else ""
    second = Channel(section.escalate, receiver, secret) if section.escalate else None
    policy = Policy(section.quiet, section.digest_minutes, section.escalate_minutes)
    folder = load(StoreSettings).directory
    path = folder / f"notify-{project}-{receiver}.json"
    first = Channel(address, receiver, secret, tuple(command))
    offer = _offers(CredentialFolder.of(folder), section.console, project) if with_answers else None
    return Notifier(first, second, policy, section.console, path, offer)


def _offers(credentials: CredentialFolder, console: str, project: str) -> Offer | None:
    """Links that answer, signed as the gateway of this data directory reads them; None where it has no secret."""
    if not console or not credentials.secret_file(CredentialRole.GATEWAY).exists():
        return None

    def offer(run: Run, answer: str) -> str:
        expires_at = int(now_seconds()) + LINK_SECONDS
        offered = OfferedAnswer(project, run.id, run.question.id, answer.upper(), expires_at)
        return answer_link(credentials.read_secret(CredentialRole.GATEWAY), console, offered)

    return offer


def _secret(name: str) -> str:
    try:
        return Path(name).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        fail_usage(f"secret_file: {name} cannot be read: {error}")
