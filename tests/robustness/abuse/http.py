"""Bad input as JSON: what a client in any language, or somebody with curl, can send to the gateway."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random  # noqa: TID251 - a campaign can be repeated from its seed

from google.protobuf.json_format import MessageToDict

from pointsman.services.gateway.contract import METHODS, Method
from tests.helpers.limits import scaled
from tests.robustness.abuse.credentials import Wallet
from tests.robustness.abuse.shapes import TEXTS, Known, valid_request

JSON = "application/json"
ENDLESS = "text/event-stream"
ALLOWED = frozenset({200, 400, 401, 403, 404, 405, 409, 411, 412, 413, 415, 422, 429, 431, 501})
SPOILED: tuple[bytes, ...] = (
    b"", b"{", b"null", b"[]", b"1", b'"x"', b"{}{}", b'{"a":1,"a":2}', b"{'a':1}", b"\xff\xfe", b"NaN", b'{"x":NaN}',
    b'{"x":1e400}', b"[" * 20_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"\xef\xbb\xbf{}", b'{"x":"\\ud800"}',
    b'{"x":' + b"9" * 5000 + b"}", b'{"request_id":"\\u0000"}', b"{}" + b" " * 100_000, b'{"__proto__":{}}',
)  # fmt: skip
VALUES: tuple[object, ...] = (
    None, True, -1, 1.5, 2**63, 10**40, "", "x" * 300_000, [], {}, [[]], [None], {"a": {"b": {}}}, "\u202e", "1e400",
    "2030-13-45T99:99:99Z", "-1s", "1e9s", ["x"] * 5000, {"x" * 500: "y"}, *(text.decode(errors="ignore") for text in TEXTS),
)  # fmt: skip
HEADERS: tuple[dict[str, str], ...] = (
    {}, {"content-type": "text/plain"}, {"content-type": "application/json; charset=utf-16"}, {"accept": "x" * 7000},
    {"pointsman-project": "../x"}, {"pointsman-project": ""}, {"traceparent": "00-zz"}, {"origin": "http://evil"},
    {"host": "evil.example"}, {"content-encoding": "gzip"}, {"expect": "100-continue"}, {"last-event-id": "x" * 500},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sent:
    """One HTTP request."""

    verb: str
    path: str
    body: bytes | None
    headers: dict[str, str]
    is_worthless: bool = False
    """Whether what it shows is nobody's."""


def requests(random: Random, known: Known, wallet: Wallet) -> Iterator[Sent]:
    """One request after the other, for ever."""
    methods = list(METHODS.values())
    while True:
        method = random.choice(methods)
        made = _request(method, random, known)
        shown, is_worthless = wallet.some_for_http(method, random)
        yield replace(made, headers={**shown, **made.headers}, is_worthless=is_worthless)


def _request(method: Method, random: Random, known: Known) -> Sent:
    kind = random.randrange(10)
    headers = {"content-type": JSON, **(random.choice(HEADERS) if kind < 2 else {})}
    body = json.dumps(_value(method, random, known)).encode()
    if kind == 2:
        body = random.choice(SPOILED)
    if kind == 3:
        return Sent(random.choice(("GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")), method.path, None, headers)
    if kind == 4:
        return Sent("GET", f"{method.path}?{_query(method, random)}", None, {})
    path = method.path + random.choice(("/", "/..", "%00", "?x=%ff", "/%2e%2e/x")) if kind == 5 else method.path
    return Sent("POST", path, body, headers)


def _value(method: Method, random: Random, known: Known) -> dict[str, object]:
    message = method.request.FromString(valid_request(method.fields, known, f"http-{random.getrandbits(60)}"))
    value: dict[str, object] = MessageToDict(message)
    fields = [field.json_name for field in method.fields.fields]
    for name in random.sample(fields, min(len(fields), random.choice((1, 1, 2)))):
        value[name] = random.choice(VALUES)
    if random.random() < 0.1:
        value[random.choice(("unknown", "", "a" * 1000))] = 1
    return value


def _query(method: Method, random: Random) -> str:
    names = [field.name for field in method.fields.fields] or ["x"]
    values = ("%00", "%ff%fe", "-1", "a" * 3000, "1e400", "%ED%A0%80", "%F0%9F%91%A9", "")
    return "&".join(f"{random.choice(names)}={random.choice(values)}" for _ in range(random.randrange(1, 5)))


class Browser:
    """One connection that is opened again when the server closes it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(60))

    def send(self, sent: Sent) -> tuple[int, bytes]:
        """The answer's status and body."""
        for attempt in (1, 2):
            try:
                self._connection.request(sent.verb, sent.path, sent.body, sent.headers)
                answer = self._connection.getresponse()
                if (answer.getheader("content-type") or "").startswith(ENDLESS):
                    self._connection.close()
                    return answer.status, b""
                return answer.status, answer.read()
            except (http.client.HTTPException, ConnectionError):
                self._connection.close()
                if attempt == 2:
                    raise
        raise AssertionError

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
