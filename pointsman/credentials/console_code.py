"""One-time codes that open the web console: signed with the gateway's secret, so that any command can make one.

A code travels in a link. It counts for one address, for a short time, and the gateway takes each code once.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from pointsman._shared.system_time import now_seconds

CODE_SECONDS = 300.0
NONCE_BYTES, TIME_BYTES, MAC_BYTES = 12, 6, 16
LOGIN_PATH = "/login"


@dataclass(frozen=True, slots=True)
class ConsoleCode:
    """A code whose signature holds."""

    nonce: bytes
    made_at: float


def make_code(secret: bytes, address: str) -> str:
    """A new code for the console at an address."""
    body = secrets.token_bytes(NONCE_BYTES) + int(now_seconds() * 1000).to_bytes(TIME_BYTES, "big")
    return base64.urlsafe_b64encode(body + _mac(secret, address, body)).rstrip(b"=").decode()


def login_link(secret: bytes, address: str) -> str:
    """The link that opens the console once."""
    return f"{address}{LOGIN_PATH}?code={make_code(secret, address)}"


def read_code(secret: bytes, address: str, code: str) -> ConsoleCode | None:
    """The code, if this secret has signed it for the address."""
    try:
        given = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
    except (binascii.Error, ValueError):
        return None
    body, mac = given[:-MAC_BYTES], given[-MAC_BYTES:]
    if len(body) != NONCE_BYTES + TIME_BYTES or not hmac.compare_digest(mac, _mac(secret, address, body)):
        return None
    return ConsoleCode(body[:NONCE_BYTES], int.from_bytes(body[NONCE_BYTES:], "big") / 1000)


def _mac(secret: bytes, address: str, body: bytes) -> bytes:
    message = b"console\0" + address.encode() + b"\0" + body
    return hmac.new(secret, message, hashlib.sha256).digest()[:MAC_BYTES]
