"""Links that answer one question of a run in one way: signed with the gateway's secret, so that a notice can carry them.

A link opens a page with one button; only the button answers, because programs that read mail and chats open links too.
The question takes one answer, so that a second click changes nothing.
"""

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass

LINK_SECONDS = 7 * 24 * 3600
MAC_BYTES = 16
ANSWER_PATH = "/answer"
MAX_TOKEN = 2048


@dataclass(frozen=True, slots=True)
class OfferedAnswer:
    """One way to answer one question, until a moment."""

    project: str
    run_id: str
    question_id: str
    answer: str
    """As in AnswerKind, without the prefix."""
    expires_at: int

    @property
    def request_id(self) -> str:
        """The idempotency key of the answer: the same for every click."""
        parts = "\0".join((self.project, self.run_id, self.question_id, self.answer))
        return f"link-{hashlib.sha256(parts.encode()).hexdigest()[:32]}"


def answer_link(secret: bytes, address: str, offered: OfferedAnswer) -> str:
    """The link of an answer at the address of a console."""
    body = json.dumps(asdict(offered), separators=(",", ":")).encode()
    token = base64.urlsafe_b64encode(_mac(secret, body) + body).rstrip(b"=").decode()
    return f"{address.rstrip('/')}{ANSWER_PATH}/{token}"


def read_token(secret: bytes, token: str, now: float) -> OfferedAnswer | None:
    """The answer of a link, if this secret has signed it and its time is not over."""
    try:
        given = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)) if len(token) <= MAX_TOKEN else b""
    except (binascii.Error, ValueError):
        return None
    mac, body = given[:MAC_BYTES], given[MAC_BYTES:]
    if not body or not hmac.compare_digest(mac, _mac(secret, body)):
        return None
    offered = OfferedAnswer(**json.loads(body))
    return offered if offered.expires_at > now else None


def _mac(secret: bytes, body: bytes) -> bytes:
    return hmac.new(secret, b"answer\0" + body, hashlib.sha256).digest()[:MAC_BYTES]
