"""What callers show in `authorization`: tokens that count, those of another role, and everything that counts for nothing."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random  # noqa: TID251 - a campaign can be repeated from its seed
from typing import Any

from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.tokens import Identity, mint
from pointsman.services.gateway.contract import Method

HEADER = "authorization"
FAR = 4_102_444_800
WORTHLESS_SHARE, OTHER_ROLE_SHARE = 0.1, 0.05
Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """What one call shows, and whether it says who calls."""

    what: str
    metadata: Metadata
    is_worthless: bool = False
    is_other_role: bool = False


class Wallet:
    """Tokens of a data directory, and what somebody makes of them who wants to be somebody else."""

    def __init__(self, data: Path) -> None:
        self._folder = CredentialFolder.of(data)

    def fitting(self, method: Method) -> Shown:
        """A token that may call the method, and may be handed every kind of work."""
        role = CredentialRole.OPERATOR if method.access.role == "ROLE_ADMIN" else CredentialRole.SERVICE
        return self.of(role)

    def of(self, role: CredentialRole, agent_id: str = "") -> Shown:
        """A token of a role, or of one agent of it."""
        name = f"{role}/{agent_id}" if agent_id else str(role)
        if name not in self._minted:
            self._minted[name] = mint(Identity(self._folder, role, agent_id))
        return Shown(name, _bearer(self._minted[name]))

    def some(self, method: Method, random: Random) -> Shown:
        """Mostly a token that fits, now and then another one, or none that counts."""
        drawn = random.random()
        if drawn < WORTHLESS_SHARE:
            return random.choice(self.worthless)
        return (
            random.choice(self.of_other_roles) if drawn < WORTHLESS_SHARE + OTHER_ROLE_SHARE else self.fitting(method)
        )

    @cached_property
    def _minted(self) -> dict[str, str]:
        return {}

    @cached_property
    def of_other_roles(self) -> list[Shown]:
        """Tokens that count, of roles that may call little; some with claims that nobody expects."""
        plain = [self.of(role) for role in CredentialRole if role is not CredentialRole.SERVICE]
        odd = {
            "boasting": self.signed(roles=["admin"], projects=["*"], capabilities=["*"]),
            "until after the end of time": self.signed(exp=10**400),
            "a long agent": self.signed(sub="coder/" + "a" * 500),
        }
        shown = [*plain, *(Shown(what, _bearer(token)) for what, token in odd.items())]
        return [Shown(one.what, one.metadata, is_other_role=True) for one in shown]

    @cached_property
    def worthless(self) -> list[Shown]:
        """Every kind of header that nobody may be let in with, as far as a gRPC client can send it."""
        valid = mint(Identity(self._folder, CredentialRole.OPERATOR))
        body, _, signature = valid.rpartition(".")
        tokens = {
            "garbage": "a.b.c",
            "no token": "",
            "cut": valid[:-7],
            "no signature": f"{body}.",
            "signature of another": f"{body}.{signature[::-1]}",
            "unsigned": f"{_encoded({'alg': 'none', 'kid': 'operator'})}.{body.partition('.')[2]}.",
            "expired": mint(Identity(self._folder, CredentialRole.OPERATOR), -5),
            "the secret itself": self._folder.secret_file(CredentialRole.CODER).read_text().strip(),
            "3 KiB": "x" * 3072,
            "deep header": f"{_base64(b'[' * 2000)}.{_base64(b'[' * 2000)}.x",
            **dict(self._forged()),
        }
        headers: dict[str, Metadata] = {
            "nothing": (),
            "empty": ((HEADER, ""),),
            "8 KiB": _bearer("x" * 8192),
            "another scheme": ((HEADER, f"Basic {valid}"),),
            "no scheme": ((HEADER, valid),),
            "another name": (("x-authorization", f"Bearer {valid}"),),
            "many": _bearer("a.b.c") * 50,
            "worthless before valid": (*_bearer("a.b.c"), *_bearer(valid)),
            "a quoted token": _bearer(f'"{valid}"'),
            **{what: _bearer(token) for what, token in tokens.items()},
        }
        return [Shown(what, metadata, is_worthless=True) for what, metadata in headers.items()]

    def _forged(self) -> Iterator[tuple[str, str]]:
        """Tokens of whoever has the secret of coders only."""
        for kid in ("operator", "verifier", "root", "../coder", "", None, ["coder"], {"a": 1}, "coder\0"):
            yield f"kid {kid}", self.signed({"kid": kid})
        for alg in ("HS512", "none", "RS256", None, ["HS256"]):
            yield f"alg {alg}", self.signed({"alg": alg})
        yield "critical", self.signed({"crit": ["x"]})
        subjects: tuple[Any, ...] = (
            "operator",
            "verifier/box-1",
            "coder/",
            "coder/a/b",
            "coder/\0",
            "coder/\ud800",
            "",
            None,
            [],
            {},
        )
        for sub in subjects:
            yield f"sub {sub!r}", self.signed(sub=sub)
        yield "a very long agent", self.signed(sub="coder/" + "a" * 600)
        times: tuple[Any, ...] = (0, -1, 1_000_000_000, float("nan"), float("inf"), "soon", None, [], {})
        for exp in times:
            yield f"exp {exp}", self.signed(exp=exp)
        for aud in ("somebody", "", None, [], ["x"], 1):
            yield f"aud {aud}", self.signed(aud=aud)

    def signed(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that is signed with the secret of coders, whatever it says."""
        head = {"alg": "HS256", "kid": "coder", **(header or {})}
        body = f"{_encoded(head)}.{_encoded({'sub': 'coder', 'aud': 'pointsman', 'exp': FAR, **claims})}"
        secret = self._folder.read_secret(CredentialRole.CODER)
        return f"{body}.{_base64(hmac.new(secret, body.encode(), hashlib.sha256).digest())}"

    def some_for_http(self, method: Method, random: Random) -> tuple[dict[str, str], bool]:
        """The same as headers of HTTP, which can be worse than what gRPC sends; and whether they are worthless."""
        if random.random() < WORTHLESS_SHARE / 2:
            return random.choice(WORSE), True
        shown = self.some(method, random)
        while len({name for name, _ in shown.metadata}) < len(shown.metadata):
            shown = self.some(method, random)
        return dict(shown.metadata), shown.is_worthless


WORSE: tuple[dict[str, str], ...] = (
    {HEADER: "Bearer a\0b"},
    {HEADER: "Bearer é.ü.ß"},
    {HEADER: "Bearer \x7f\x80\xff"},
    {HEADER: "\t"},
    {"cookie": "pointsman_session=x"},
    {"cookie": "pointsman_session=" + "x" * 4000, "pointsman-console": "y" * 3000},
    {"cookie": "pointsman_session=; pointsman_session=; =;;;", "pointsman-console": ""},
    {"cookie": 'pointsman_session="\\000\\377"', "pointsman-console": "é"},
)
"""Headers that no gRPC client sends, and sessions of nobody."""


def _bearer(token: str) -> Metadata:
    return ((HEADER, f"Bearer {token}"),)


def _encoded(value: object) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
