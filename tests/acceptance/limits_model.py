"""A server that answers every question of an agent as its maker's servers do when a limit is reached."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RESET_SECONDS = 7200


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status, a body and headers."""

    status: int
    body: Any
    headers: Mapping[str, str]


def anthropic(kind: str) -> Refusal:
    """Anthropic's refusals."""
    if kind == "overloaded":
        return Refusal(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, {})
    if kind == "throttled":
        message = "This request would exceed your organization's rate limit of 50 requests per minute."
        body = {"type": "error", "error": {"type": "rate_limit_error", "message": message}}
        return Refusal(429, body, {"retry-after": "2"})
    message = "You have reached your specified API usage limits. You will regain access on 2030-01-01 at 00:00 UTC."
    return Refusal(400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}, {})


def openai(kind: str) -> Refusal:
    """OpenAI's refusals."""
    if kind == "overloaded":
        error: dict[str, Any] = {
            "message": "The server is overloaded or not ready yet.",
            "type": "server_error",
            "code": None,
        }
        return Refusal(503, {"error": error}, {})
    if kind == "throttled":
        message = "Rate limit reached for gpt-4o in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s."
        return Refusal(
            429,
            {"error": {"message": message, "type": "requests", "code": "rate_limit_exceeded"}},
            {"retry-after": "2"},
        )
    message = "You exceeded your current quota, please check your plan and billing details."
    return Refusal(429, {"error": {"message": message, "type": "insufficient_quota", "code": "insufficient_quota"}}, {})


def google(kind: str) -> Refusal:
    """Google's refusals."""
    if kind == "overloaded":
        return Refusal(
            503,
            {
                "error": {
                    "code": 503,
                    "message": "The model is overloaded. Please try again later.",
                    "status": "UNAVAILABLE",
                }
            },
            {},
        )
    delay = "2s" if kind == "throttled" else f"{RESET_SECONDS}s"
    limit = "PerMinute" if kind == "throttled" else "PerDay"
    violation = {
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
        "quotaId": f"GenerateRequests{limit}PerProjectPerModel",
    }
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    message = f"You exceeded your current quota, please check your plan and billing details. Please retry in {delay}."
    return Refusal(
        429, {"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}}, {}
    )


MAKERS = {
    "claude": anthropic, "codex": openai, "gemini": google, "aider": openai, "opencode": openai, "qwen": openai,
    "pi": openai, "gptme": openai,
}  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Limited"

    def do_POST(self) -> None:
        """Whatever is asked, the limit is reached."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked += 1
        refusal = MAKERS[self.path.split("/")[1]](self.server.kind)
        data = json.dumps(refusal.body).encode()
        self.send_response(refusal.status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **refusal.headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        """The same for readers."""
        self.do_POST()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the library gives it
        """Kept quiet."""


class Limited(ThreadingHTTPServer):
    """The server, and how often it was asked."""

    daemon_threads = True

    def __init__(self, kind: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kind = kind
        self.asked = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def limited(kind: str) -> Iterator[Limited]:
    """A server that refuses while the block runs."""
    server = Limited(kind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
