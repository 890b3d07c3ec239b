"""The pages around a session: the one that takes the code, the one that says how to get a code, the end of a session."""

from collections.abc import Awaitable, Callable
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from pointsman.credentials.console_code import LOGIN_PATH
from pointsman.services.gateway.sessions import COOKIE, SESSION_SECONDS, Session, Sessions

LOGOUT_PATH = "/logout"
HEADERS = {"Cache-Control": "no-store"}
PAGE = """<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Pointsman</title>{head}</head>
  <body><main><h1>Pointsman</h1>{body}</main></body>
</html>
"""
CLOSED = "<p>{reason} Run this where Pointsman runs, and open the link that it prints:</p><pre>pointsman console</pre>"
Endpoint = Callable[[Request], Awaitable[Response]]


def routes(sessions: Sessions, script: str) -> list[BaseRoute]:
    """The pages of a session; `script` is the path of the script that keeps the proof."""

    async def login(request: Request) -> Response:
        session = sessions.exchange(request.query_params.get("code", ""))
        if session is None:
            return closed_page("This link was used already, or is too old.")
        return _opened_page(session, script)

    async def logout(request: Request) -> Response:
        sessions.end(request)
        response = Response(status_code=204, headers=HEADERS)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    return [Route(LOGIN_PATH, login), Route(LOGOUT_PATH, logout, methods=["POST"])]


def only_with_session(sessions: Sessions | None, endpoint: Endpoint) -> Endpoint:
    """An endpoint that answers everybody without a session with the page that says how to get one."""
    if sessions is None:
        return endpoint

    async def answer(request: Request) -> Response:
        return await endpoint(request) if sessions.is_open(request) else closed_page("The console is closed.")

    return answer


def closed_page(reason: str) -> Response:
    """The page for visitors without a session."""
    return HTMLResponse(PAGE.format(head="", body=CLOSED.format(reason=escape(reason))), 401, HEADERS)


def _opened_page(session: Session, script: str) -> Response:
    """The page that keeps the proof and goes on to the console.

    A redirect would not do: a browser that comes from another site sends no strict cookie with it.
    """
    head = (
        f'<meta name="proof" content="{escape(session.proof)}"><script type="module" src="{escape(script)}"></script>'
    )
    response = HTMLResponse(PAGE.format(head=head, body='<p><a href="/">Open the console</a></p>'), headers=HEADERS)
    response.set_cookie(
        COOKIE, session.cookie, max_age=int(SESSION_SECONDS), path="/", httponly=True, samesite="strict"
    )
    return response
