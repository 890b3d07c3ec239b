"""The console's files, read once and served under an address that changes with them, so that browsers keep them."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pointsman.services.gateway.contract import PREFIX
from pointsman.services.gateway.joining import joined

FOLDER = Path(__file__).parent / "console"
INDEX, ICON, SCRIPT, STYLE = "index.html", "icon.svg", "console.js", "console.css"
ENTRY = "main"
VIEWS = ("/", "/runs", "/people", "/agents", "/router")
RUN_VIEW = "/runs/{run_id:path}"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
MAX_ID = 128
UNTOUCHED = "!'()*"
"""What JavaScript's encodeURIComponent leaves alone besides letters and digits: both have to write the same address."""
ORCHESTRATOR = f"{PREFIX}/orchestrator.OrchestratorService"


@dataclass(frozen=True, slots=True)
class File:
    """One file, in memory."""

    body: bytes
    media_type: str
    caching: str = ASK_AGAIN
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        """Name it by what is in it."""
        object.__setattr__(self, "tag", f'"{_digest(self.body)}"')

    async def serve(self, request: Request) -> Response:
        """The file, or the word that the browser has it already."""
        headers = {"ETag": self.tag, "Cache-Control": self.caching}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=self.media_type)

    async def serve_run(self, request: Request) -> Response:
        """The same, and the word to fetch the run at once, while the script is still on its way."""
        response = await self.serve(request)
        run_id = request.path_params["run_id"]
        if len(run_id) <= MAX_ID and "project" not in request.query_params:
            addresses = (f"GetRun?run_id={quote(run_id, safe=UNTOUCHED)}", "GetMachine")
            response.headers["Link"] = ", ".join(
                f"<{ORCHESTRATOR}/{address}>; rel=preload; as=fetch; crossorigin=anonymous" for address in addresses
            )
        return response


def read(path: Path) -> File:
    """A file that browsers ask for anew each time."""
    return File(path.read_bytes(), MEDIA_TYPES[path.suffix])


def routes(*, asks_for_tokens: bool) -> list[BaseRoute]:
    """Script, style and icon below a folder that is named by what is in them, and the one page for every view."""
    icon = (FOLDER / ICON).read_bytes()
    assets = {SCRIPT: script().encode(), STYLE: style().encode(), ICON: icon}
    version = _digest(b"".join(assets.values()))
    page = File(
        (FOLDER / INDEX).read_bytes().replace(b"/console/", f"/console/{version}/".encode()), MEDIA_TYPES[".html"]
    )
    return [
        *(Route(f"/console/{version}/{name}", _kept(name, body).serve) for name, body in assets.items()),
        Route("/favicon.ico", File(icon, MEDIA_TYPES[".svg"]).serve),
        *(Route(view, page.serve) for view in VIEWS),
        Route(RUN_VIEW, page.serve if asks_for_tokens else page.serve_run),
    ]


def script() -> str:
    """All modules as one."""
    return joined({path.stem: path.read_text() for path in FOLDER.rglob("*.js")}, ENTRY)


def style() -> str:
    """All style sheets as one, in the order of their names."""
    return "\n".join(path.read_text() for path in sorted(FOLDER.rglob("*.css")))


def _kept(name: str, body: bytes) -> File:
    return File(body, MEDIA_TYPES[Path(name).suffix], FOR_EVER)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:24]
