"""Notices: what a receiver gets, signed; at least once, with the question's id, over crashes and refusals."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import ANSWER_KIND_CLARIFIED
from pointsman.client import Order, Reply
from pointsman.notify.delivery import Channel
from pointsman.notify.follower import Follower
from pointsman.notify.notice import Notice, Receiver, body_of, signature
from pointsman.notify.place import Place
from pointsman.testing.planes import control_plane_in
from tests.helpers.eventually import eventually, eventually_now
from tests.helpers.limits import within

HOSTILE = Notice("q1", "run_1", "<!channel> <http://evil.example|click>", ("accept",), "http://127.0.0.1/#/runs/run_1")


class Listening(ThreadingHTTPServer):
    """A receiver that refuses the first notices."""

    daemon_threads = True

    def __init__(self, refuses: int, status: int = 500) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refuses, self.status = refuses, status
        self.read: list[str] = []
        self.got: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Listening

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        refuses = len(self.server.got) <= self.server.refuses
        self.send_response(self.server.status if refuses else 204)
        if refuses:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.read.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the library gives it
        pass


@contextmanager
def listening(refuses: int = 0, status: int = 500) -> Iterator[Listening]:
    server = Listening(refuses, status)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_question_is_told_with_its_id_until_it_is_taken_and_not_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "notify.json"
    with listening(refuses=1) as server:
        channel = Channel(server.url, Receiver.WEBHOOK, "secret")
        async with control_plane_in(tmp_path / "data") as client:
            first = asyncio.create_task(Follower(client, Place.read(path), channel).run())
            run_id = (await client.runs.submit(Order("fix something", as_action=True))).run.id

            async def is_told() -> bool:
                return bool(Place.read(path).notified)

            await eventually(is_told)
            first.cancel()
            again = asyncio.create_task(Follower(client, Place.read(path), channel).run())
            second = (await client.runs.submit(Order("fix something else", as_action=True))).run.id

            async def both() -> bool:
                return len(Place.read(path).notified) == 2

            await eventually(both)
            for task in (first, again):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            question = (await client.runs.get(run_id)).question
    notices = [json.loads(body) for _, body in server.got]
    assert [one["run_id"] for one in notices] == [run_id, run_id, second], "refused once, then taken; each told once"
    assert {one["id"] for one in notices[:2]} == {f"{run_id}.{question.id}"}
    for headers, body in server.got:
        signed = signature("secret", int(headers["pointsman-timestamp"]), body)
        assert headers["pointsman-signature"] == f"v1={signed}"
        assert headers["pointsman-id"] == json.loads(body)["id"]


async def test_a_question_that_took_the_place_of_another_is_told_once(tmp_path: Path) -> None:
    """Two questions in the journal before anybody follows it: the first was answered and needs nobody."""
    path = tmp_path / "notify.json"
    with listening() as server:
        async with control_plane_in(tmp_path / "data") as client:
            run_id = (await client.runs.submit(Order("fix something", as_action=True))).run.id

            async def asks() -> str:
                return (await client.runs.get(run_id)).question.id

            first = await eventually(asks)
            unsure = Reply(ANSWER_KIND_CLARIFIED, "something else", confidence=0.1)
            second = (await client.runs.answer(run_id, first, unsure)).question.id
            assert second not in ("", first)
            following = asyncio.create_task(Follower(client, Place.read(path), Channel(server.url)).run())
            last = (await client.runs.submit(Order("fix something", as_action=True))).run.id

            async def is_told() -> bool:
                return len(Place.read(path).notified) >= 2

            await eventually(is_told)
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
    told = [json.loads(body)["id"] for _, body in server.got]
    assert told[0] == f"{run_id}.{second}"
    assert [one.partition(".")[0] for one in told] == [run_id, last]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_receiver_that_redirects_has_taken_nothing_and_chooses_nobody_to_be_called(status: int) -> None:
    with listening(refuses=1, status=status) as server:
        await Channel(server.url, Receiver.WEBHOOK).send(HOSTILE)
        assert (len(server.got), server.read) == (2, [])


def test_slack_is_given_no_marks_of_others_and_ntfy_a_line() -> None:
    text = json.loads(body_of(HOSTILE, Receiver.SLACK))["text"]
    assert "<!channel>" not in text
    assert text.endswith("<http://127.0.0.1/#/runs/run_1|Answer in the console>")
    assert body_of(HOSTILE, Receiver.NTFY).decode() == HOSTILE.line


async def test_a_command_gets_the_notice_as_one_argument_and_is_tried_again(tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = (
        "import pathlib, sys; told = pathlib.Path(sys.argv[1]); first = not told.exists(); "
        "told.write_text(sys.argv[2]); raise SystemExit(first)"
    )
    async with within(30):
        await Channel(command=(sys.executable, "-c", code, str(told))).send(HOSTILE)
    assert eventually_now(told.read_text, 5) == HOSTILE.line
