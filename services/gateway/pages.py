"""The console's files, read once and served with their digest, so that a browser asks again without loading again."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

FOLDER = Path(__file__).parent / "console"
INDEX = "index.html"
VIEWS = ("/", "/runs", "/runs/{run_id:path}", "/people", "/agents", "/router")
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


@dataclass(frozen=True, slots=True)
class File:
    """One file of the console."""

    body: bytes
    media_type: str
    tag: str

    async def serve(self, request: Request) -> Response:
        """The file, or the word that the browser has it already."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=self.media_type)


def read(path: Path) -> File:
    """A file with its digest."""
    body = path.read_bytes()
    return File(body, MEDIA_TYPES[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def routes() -> list[BaseRoute]:
    """Every file under /console/, and the one page under the address of each view."""
    files = {path: read(path) for path in sorted(FOLDER.rglob("*")) if path.suffix in MEDIA_TYPES}
    assets: list[BaseRoute] = [
        Route(f"/console/{path.relative_to(FOLDER).as_posix()}", file.serve) for path, file in files.items()
    ]
    return [*assets, *(Route(view, files[FOLDER / INDEX].serve) for view in VIEWS)]
