"""Bare repositories over HTTP: git's own http-backend behind a small server on loopback."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit


class GitBackend(BaseHTTPRequestHandler):
    """Hands each request to `git http-backend`, as a CGI server would."""

    root = ""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        asked = urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.root, "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": asked.path, "QUERY_STRING": asked.query, "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_USER": "somebody", "REMOTE_ADDR": "127.0.0.1",
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "CONTENT_LENGTH": self.headers.get("Content-Length", "0"),
        }  # fmt: skip
        body = self.rfile.read(int(environment["CONTENT_LENGTH"]))
        done = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if line]
        status = next((value for name, value in headers if name == "Status"), "200")
        self.send_response(int(status.split()[0]))
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *_values: Any) -> None:  # noqa: A002 - its name is the base's
        """Tests read no access log."""


@contextmanager
def git_over_http(root: Path, handler_class: type[GitBackend] = GitBackend, **more: Any) -> Iterator[str]:
    """Serves the bare repositories below a folder; the address of that folder."""
    handler = type("Backend", (handler_class,), {"root": str(root), **more})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
