"""A notice about a question, and how each kind of receiver wants it."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pointsman.api.orchestrator.v1.run_pb2 import AnswerKind, Run
from pointsman.worker.quoting import printable

MAX_TEXT = 2000


class Receiver(StrEnum):
    """What listens at the address."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    NTFY = "ntfy"


@dataclass(frozen=True, slots=True)
class Notice:
    """A question that waits for a person, or several as a digest, which has no run.

    The id names run and question, so that a repeated notice is known as one.
    """

    id: str
    run_id: str
    question: str
    answers: tuple[str, ...]
    link: str

    @property
    def line(self) -> str:
        """The notice as one line."""
        return f"{self.run_id} asks: {self.question}" if self.run_id else self.question


def notice_of(run: Run, console: str) -> Notice:
    """The notice about a run's open question; what others wrote in it is shown, never acted on."""
    takes = tuple(AnswerKind.Name(kind).removeprefix("ANSWER_KIND_").lower() for kind in run.question.takes)
    link = f"{console.rstrip('/')}/#/runs/{run.id}" if console else ""
    return Notice(f"{run.id}.{run.question.id}", run.id, printable(run.question.text)[:MAX_TEXT], takes, link)


def digest_of(notices: Sequence[Notice]) -> Notice:
    """One notice for several questions; that of one question is the notice itself."""
    first, *others = notices
    if not others:
        return first
    name = hashlib.sha256("\n".join(one.id for one in notices).encode()).hexdigest()[:16]
    question = f"{len(notices)} questions wait: {'; '.join(one.line for one in notices)}"
    link = f"{first.link.partition('/#/')[0]}/#/people" if first.link else ""
    return Notice(f"digest.{name}", "", question[:MAX_TEXT], (), link)


def body_of(notice: Notice, receiver: Receiver) -> bytes:
    """What is sent to a receiver."""
    if receiver is Receiver.NTFY:
        return notice.line.encode()
    if receiver is Receiver.SLACK:
        how = f"\n<{notice.link}|Answer in the console>" if notice.link else ""
        return json.dumps({"text": f"{_slack(notice.line)}{how}"}).encode()
    value: dict[str, Any] = {
        "id": notice.id, "type": "question" if notice.run_id else "digest", "run_id": notice.run_id, "question": notice.question,
        "answers": list(notice.answers), "link": notice.link,
    }  # fmt: skip
    return json.dumps(value).encode()


def headers_of(notice: Notice, receiver: Receiver, body: bytes, secret: str, timestamp: int) -> dict[str, str]:
    """The headers: the id for receivers that have seen it, and a signature over time and body where there is a secret."""
    headers = {"Content-Type": "text/plain" if receiver is Receiver.NTFY else "application/json"}
    headers |= {"Pointsman-Id": notice.id, "Pointsman-Timestamp": str(timestamp)}
    if receiver is Receiver.NTFY and notice.link:
        headers["Click"] = notice.link
    if secret:
        headers["Pointsman-Signature"] = f"v1={signature(secret, timestamp, body)}"
    return headers


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 over the timestamp, a dot and the body; a receiver refuses an old timestamp."""
    return hmac.new(secret.encode(), str(timestamp).encode() + b"." + body, hashlib.sha256).hexdigest()


def _slack(text: str) -> str:
    """Without Slack's own marks, which could make a link or call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
