"""The console's files, read once and served under versioned paths, so that browsers cache them."""

import hashlib
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pointsman.services.gateway import login
from pointsman.services.gateway.bundling import Bundle, bundle, compact
from pointsman.services.gateway.compression import BEST, GZIP, VARY, compress, takes_gzip
from pointsman.services.gateway.contract import PREFIX
from pointsman.services.gateway.sessions import Sessions

FOLDER = Path(__file__).parent / "console"
INDEX, ICON, STYLE, LOGIN, EARLY = "index.html", "icon.svg", "console.css", "login.js", "early.js"
SCRIPT, LATER = "console.js", "later.js"
ENTRY = "main"
VIEWS = ("/", "/runs", "/new", "/people", "/agents", "/queue", "/schedules", "/router", "/components")
RUN_VIEW = "/runs/{run_id:path}"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
CACHE_IMMUTABLE = "public, max-age=31536000, immutable"
ANY_METHOD = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Nothing is there for any of them: 404, not 405."""
REVALIDATE = "no-cache"
MAX_ID = 128
UNESCAPED = "!'()*"
"""Characters that encodeURIComponent does not escape: the preload URL must equal the URL of the script."""
ORCHESTRATOR = f"{PREFIX}/orchestrator.OrchestratorService"


@dataclass(frozen=True, slots=True)
class File:
    """One file, in memory, as it is and compressed."""

    body: bytes
    media_type: str
    caching: str = REVALIDATE
    tag: str = field(init=False)
    compressed: bytes = field(init=False)

    def __post_init__(self) -> None:
        """Compute the ETag and the compressed body."""
        object.__setattr__(self, "tag", f'"{_digest(self.body)}"')
        object.__setattr__(self, "compressed", compress(self.body, BEST))

    async def serve(self, request: Request) -> Response:
        """The file, or 304 if the browser has it."""
        headers = {"ETag": self.tag, "Cache-Control": self.caching, **VARY}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        if takes_gzip(request):
            return Response(self.compressed, headers={**headers, **GZIP}, media_type=self.media_type)
        return Response(self.body, headers=headers, media_type=self.media_type)

    async def serve_missing(self, request: Request) -> Response:
        """The page for an address that leads nowhere; it says so itself."""
        response = await self.serve(request)
        response.status_code = 404
        return response

    async def serve_run(self, request: Request) -> Response:
        """The page with a preload link for the run, so that it loads beside the script."""
        response = await self.serve(request)
        run_id = request.path_params["run_id"]
        if len(run_id) <= MAX_ID and "project" not in request.query_params:
            address = f"{ORCHESTRATOR}/GetRun?run_id={quote(run_id, safe=UNESCAPED)}"
            response.headers["Link"] = f"<{address}>; rel=preload; as=fetch; crossorigin=anonymous"
        return response


def read(path: Path) -> File:
    """A file that browsers revalidate on each request."""
    return File(path.read_bytes(), MEDIA_TYPES[path.suffix])


def routes(sessions: Sessions | None, *, asks_for_tokens: bool) -> tuple[list[BaseRoute], BaseRoute]:
    """Script, style and icon under a path with their digest, the page for every view, and last the one for no view."""
    icon = (FOLDER / ICON).read_bytes()
    scripts = script()
    assets = {SCRIPT: scripts.first.encode(), LATER: scripts.later.encode(), STYLE: style().encode(), ICON: icon}
    assets |= {name: compact((FOLDER / name).read_text()).encode() for name in (LOGIN, EARLY)}
    version = _digest(b"".join(assets.values()))
    gate = partial(login.only_with_session, sessions)
    is_plain = asks_for_tokens or sessions is not None
    page = File(
        (FOLDER / INDEX).read_bytes().replace(b"/console/", f"/console/{version}/".encode()), MEDIA_TYPES[".html"]
    )
    return [
        *(Route(f"/console/{version}/{name}", _immutable(name, body).serve) for name, body in assets.items()),
        Route("/favicon.ico", File(icon, MEDIA_TYPES[".svg"]).serve),
        *(login.routes(sessions, f"/console/{version}/{LOGIN}") if sessions is not None else ()),
        *(Route(view, gate(page.serve)) for view in VIEWS),
        Route(RUN_VIEW, gate(page.serve if is_plain else page.serve_run)),
    ], Route("/{path:path}", gate(page.serve_missing), methods=ANY_METHOD)


def script() -> Bundle:
    """The bundled scripts."""
    return bundle({path.stem: path.read_text() for path in FOLDER.rglob("*.js")}, ENTRY, (SCRIPT, LATER))


def style() -> str:
    """The style sheets, concatenated in the order of their names."""
    return "\n".join(path.read_text() for path in sorted(FOLDER.rglob("*.css")))


def _immutable(name: str, body: bytes) -> File:
    return File(body, MEDIA_TYPES[Path(name).suffix], CACHE_IMMUTABLE)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:24]
