"""The page of a signed link that answers a question: what is asked, one button, and later what was answered."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from pointsman.api.common.v1.common_pb2 import Page
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1.run_pb2 import AnswerKind, Run
from pointsman.credentials.answer_link import ANSWER_PATH, OfferedAnswer, read_token
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.client import metadata_for
from pointsman.services.gateway.contract import METHODS, PREFIX, Method
from pointsman.services.gateway.login import PAGE
from pointsman.services.gateway.peers import Peers
from pointsman.services.gateway.security import POLICY

SERVICE = f"{PREFIX}/orchestrator.OrchestratorService"
GET_RUN, ANSWER, TRANSITIONS = (METHODS[f"{SERVICE}/{name}"] for name in ("GetRun", "Answer", "ListTransitions"))
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY.replace("form-action 'none'", "form-action 'self'"),
}
GONE = "This link is not valid any more. Open the console, or run <code>pointsman runs</code>, to see what waits."


@dataclass(frozen=True, slots=True)
class AnswerPages:
    """Answers questions for holders of signed links; the gateway itself is the caller of the services."""

    peers: Peers
    secret: Callable[[], bytes]

    def routes(self) -> list[BaseRoute]:
        """The page of a link, and its button."""
        path = f"{ANSWER_PATH}/{{token}}"
        return [Route(path, self.show, methods=["GET"]), Route(path, self.answer, methods=["POST"])]

    async def show(self, request: Request) -> Response:
        """What is asked, with the button that answers it."""
        offered = self._offered(request)
        if offered is None:
            return _page(GONE, 404)
        run = await self._run(offered)
        if run is None:
            return _page(GONE, 404)
        if run.question.id != offered.question_id:
            return _page(await self._answered(offered))
        button = f'<form method="post"><button>{escape(_plain(offered.answer))}</button></form>'
        return _page(f"<p>{escape(offered.run_id)} asks:</p><pre>{escape(run.question.text)}</pre>{button}")

    async def answer(self, request: Request) -> Response:
        """Answers once; every later click shows what was answered."""
        offered = self._offered(request)
        if offered is None:
            return _page(GONE, 404)
        message = pb.AnswerRequest(
            request_id=offered.request_id,
            run_id=offered.run_id,
            question_id=offered.question_id,
            answer=AnswerKind.Value(f"ANSWER_KIND_{offered.answer}"),
        )
        try:
            await self._call(ANSWER, message, offered)
        except Refusal as refusal:
            if await self._run(offered) is None:
                return _page(GONE, 404)
            was_answered = await self._reply(offered)
            if not was_answered:
                return _page(f"<p>Not answered: {escape(refusal.message)}</p>", 409)
        return _page(await self._answered(offered))

    def _offered(self, request: Request) -> OfferedAnswer | None:
        return read_token(self.secret(), request.path_params["token"], SystemClock().now().timestamp())

    async def _run(self, offered: OfferedAnswer) -> Run | None:
        try:
            answer: pb.GetRunResponse = await self._call(GET_RUN, pb.GetRunRequest(run_id=offered.run_id), offered)
        except Refusal:
            return None
        return answer.run

    async def _answered(self, offered: OfferedAnswer) -> str:
        reply = await self._reply(offered)
        how = f"Answered: <b>{escape(_plain(reply))}</b>." if reply else "This question was withdrawn."
        return f"<p>{escape(offered.run_id)}: {how}</p>"

    async def _reply(self, offered: OfferedAnswer) -> str:
        """The answer that the question was given; empty where it has none."""
        message = pb.ListTransitionsRequest(run_id=offered.run_id, page=Page(page_size=1000))
        while True:
            page: pb.ListTransitionsResponse = await self._call(TRANSITIONS, message, offered)
            for transition in page.transitions:
                answered = transition.run.answered
                if answered.question_id == offered.question_id:
                    return str(answered.reply)
            if not page.next_page_token:
                return ""
            message.page.page_token = page.next_page_token

    async def _call(self, method: Method, message: Message, offered: OfferedAnswer) -> Any:
        return await self.peers.call(method, message, metadata_for(offered.project, ""))


def _plain(answer: str) -> str:
    return answer.lower().replace("_", " ")


def _page(body: str, status: int = 200) -> Response:
    return HTMLResponse(PAGE.format(head="", body=body), status, HEADERS)
