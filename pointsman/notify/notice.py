"""A notice about a question, and how each kind of receiver wants it."""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pointsman.api.orchestrator.v1.run_pb2 import AnswerKind, Run
from pointsman.worker.quoting import printable

MAX_TEXT = 2000
WORDLESS = frozenset(
    {"resume_yes", "resume_no", "switch", "keep", "merge", "accept", "proceed", "escalate", "retry", "resume"}
)
"""Answers that need no words beside them."""
Offer = Callable[[Run, str], str]
"""The link that gives an answer to a run's open question."""


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
    answer_links: Mapping[str, str] = field(default_factory=dict)
    """Answer to the link that gives it; only answers that need no words."""

    @property
    def line(self) -> str:
        """The notice as one line."""
        return f"{self.run_id} asks: {self.question}" if self.run_id else self.question


def notice_of(run: Run, console: str, offer: Offer | None = None) -> Notice:
    """The notice about a run's open question; what others wrote in it is shown, never acted on."""
    takes = tuple(AnswerKind.Name(kind).removeprefix("ANSWER_KIND_").lower() for kind in run.question.takes)
    link = f"{console.rstrip('/')}/runs/{run.id}" if console else ""
    links = {kind: offer(run, kind) for kind in takes if kind in WORDLESS} if console and offer else {}
    return Notice(f"{run.id}.{run.question.id}", run.id, printable(run.question.text)[:MAX_TEXT], takes, link, links)


def digest_of(notices: Sequence[Notice]) -> Notice:
    """One notice for several questions; that of one question is the notice itself."""
    first, *others = notices
    if not others:
        return first
    name = hashlib.sha256("\n".join(one.id for one in notices).encode()).hexdigest()[:16]
    question = f"{len(notices)} questions wait: {'; '.join(one.line for one in notices)}"
    link = f"{first.link.rpartition('/runs/')[0]}/people" if first.link else ""
    return Notice(f"digest.{name}", "", question[:MAX_TEXT], (), link)


def body_of(notice: Notice, receiver: Receiver) -> bytes:
    """What is sent to a receiver."""
    if receiver is Receiver.NTFY:
        return notice.line.encode()
    if receiver is Receiver.SLACK:
        links = {**notice.answer_links, **({"Answer in the console": notice.link} if notice.link else {})}
        how = " · ".join(f"<{link}|{name.replace('_', ' ')}>" for name, link in links.items())
        return json.dumps({"text": "\n".join(filter(None, (_slack(notice.line), how)))}).encode()
    value: dict[str, Any] = {
        "id": notice.id, "type": "question" if notice.run_id else "digest", "run_id": notice.run_id, "question": notice.question,
        "answers": list(notice.answers), "link": notice.link,
        "answer_links": dict(notice.answer_links),
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
