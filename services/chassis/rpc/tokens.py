"""Bearer tokens (JWT): reads the public keys and verifies signatures and claims."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt
from jwt.algorithms import get_default_algorithms

from pointsman.services.chassis.core.errors import Refusal, invalid_field

AUDIENCE = "pointsman"
ALGORITHMS = ("EdDSA", "ES256", "RS256")
BEGIN = "-----BEGIN "
BLOCK = re.compile(r"-----BEGIN ((?:RSA )?PUBLIC KEY)-----[A-Za-z0-9+/=\s]+-----END \1-----")
Keys = Mapping[str, tuple[Any, ...]]
"""The public keys by algorithm."""


def read_keys(path: Path) -> Keys:
    """All keys of a PEM file; a file with anything that is no public key is refused as a whole."""
    text = path.read_text()
    blocks = [found.group() for found in BLOCK.finditer(text)]
    if not blocks or len(blocks) != text.count(BEGIN):
        raise _unreadable(path)
    keys: dict[str, tuple[Any, ...]] = {}
    for block in blocks:
        algorithm, key = _key(path, block)
        keys[algorithm] = (*keys.get(algorithm, ()), key)
    return keys


def claims_of(token: str, keys: Keys) -> Mapping[str, Any]:
    """The verified claims of a token; every key of its algorithm is tried, so that keys can be rotated."""
    algorithm = str(jwt.get_unverified_header(token).get("alg"))
    options: Any = {"require": ["exp", "sub", "aud"]}
    for key in keys.get(algorithm, ()):
        try:
            return jwt.decode(token, key, algorithms=[algorithm], audience=AUDIENCE, options=options)
        except jwt.InvalidSignatureError:
            continue
    raise jwt.InvalidSignatureError("no known key has signed it")


def expiry_of(token: str) -> int:
    """The expiry of an already verified token, in seconds since the epoch."""
    return int(jwt.decode(token, options={"verify_signature": False})["exp"])


def _key(path: Path, block: str) -> tuple[str, Any]:
    known = get_default_algorithms()
    for algorithm in ALGORITHMS:
        try:
            return algorithm, known[algorithm].prepare_key(block)
        except (jwt.PyJWTError, ValueError, TypeError):
            continue
    raise _unreadable(path)


def _unreadable(path: Path) -> Refusal:
    return invalid_field("TOKEN_KEYS", f"{path} is not a PEM file of public keys for {', '.join(ALGORITHMS)}")
