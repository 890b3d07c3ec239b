"""The console's files, read once and served under an address that changes with them, so that browsers keep them."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

FOLDER = Path(__file__).parent / "console"
INDEX, ICON = "index.html", "icon.svg"
VIEWS = ("/", "/runs", "/runs/{run_id:path}", "/people", "/agents", "/router")
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"


@dataclass(frozen=True, slots=True)
class File:
    """One file, in memory."""

    body: bytes
    media_type: str
    caching: str

    async def serve(self, request: Request) -> Response:
        """The file, or the word that the browser has it already."""
        tag = f'"{_digest(self.body)}"'
        headers = {"ETag": tag, "Cache-Control": self.caching}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=self.media_type)


def read(path: Path) -> File:
    """A file that browsers ask for anew each time."""
    return File(path.read_bytes(), MEDIA_TYPES[path.suffix], ASK_AGAIN)


def routes() -> list[BaseRoute]:
    """Every file below a folder that is named by what is in it, and the one page under the address of each view."""
    paths = sorted(path for path in FOLDER.rglob("*") if path.suffix in MEDIA_TYPES)
    version = _digest(b"".join(path.read_bytes() for path in paths))
    assets: list[BaseRoute] = [
        Route(f"/console/{version}/{path.relative_to(FOLDER).as_posix()}", replace(read(path), caching=FOR_EVER).serve)
        for path in paths
    ]
    index = read(FOLDER / INDEX)
    page = replace(index, body=index.body.replace(b"/console/", f"/console/{version}/".encode()))
    icon = Route("/favicon.ico", read(FOLDER / ICON).serve)
    return [*assets, icon, *(Route(view, page.serve) for view in VIEWS)]


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:24]
