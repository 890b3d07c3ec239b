"""New ids: sortable by time of birth, unguessable in their tail; the only source of randomness. And ids made of others."""

import hashlib
import secrets
from datetime import datetime

from pointsman.services.chassis.core.clock import to_us

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80


def new_id(prefix: str, now: datetime) -> str:
    """An id such as `run_06e2k4…`: 48 bits of milliseconds, 80 of chance, in base 32."""
    number = (to_us(now) // 1000 << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    return f"{prefix}_{_base32(number, 26)}"


def derived_id(key: str, limit: int) -> str:
    """An id made of other ids: as it reads where it fits, else its digest behind its beginning, so that none are alike."""
    if len(key) <= limit:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"{key[: limit - len(digest) - 1]}-{digest}"


def new_nonce() -> str:
    """A secret of 96 bits that only its receiver knows."""
    return _base32(secrets.randbits(96), 20)


def new_secret(prefix: str) -> str:
    """A secret of 256 bits; the prefix says what it opens, so that it is masked wherever it is printed."""
    return f"{prefix}_{secrets.randbits(256):064x}"


def secret_digest(secret: str) -> str:
    """What is stored of a secret: it tells a right one from a wrong one and opens nothing itself."""
    return hashlib.sha256(secret.encode()).hexdigest()


def jitter(seconds: float) -> float:
    """A time between half of the given one and all of it, so that retries do not march in step."""
    return seconds * (0.5 + secrets.randbelow(1000) / 2000)


def _base32(number: int, length: int) -> str:
    return "".join(_ALPHABET[number >> (5 * place) & 31] for place in reversed(range(length)))
