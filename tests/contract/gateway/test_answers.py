"""Signed links answer a question once: a page, a button, and later what was answered; nobody else answers anything."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import (
    ANSWER_KIND_PROCEED,
    ANSWER_KIND_RETRY,
    RUN_STATE_COMPLETE,
    AnswerKind,
    Run,
)
from pointsman.credentials.answer_link import LINK_SECONDS, OfferedAnswer, answer_link, read_token
from pointsman.credentials.folder import CredentialRole
from pointsman.credentials.tokens import Identity, mint
from pointsman.notify.notice import WORDLESS, Receiver, body_of, notice_of
from pointsman.services.chassis.core.clock import SystemClock
from tests.contract.access.loopbacks import Loopback, loopback
from tests.contract.gateway.gateways import Web
from tests.scenarios.planes import MOCKED, clients

SECRET = b"s" * 32
OFFERED = OfferedAnswer("local", "run_1", "q1", "ACCEPT", 1000)
CLICK = {"content-type": "application/x-www-form-urlencoded"}


def test_a_token_is_read_back_only_with_its_secret_whole_and_in_time() -> None:
    token = answer_link(SECRET, "http://127.0.0.1:1/", OFFERED).removeprefix("http://127.0.0.1:1/answer/")
    assert read_token(SECRET, token, 999.0) == OFFERED
    assert read_token(SECRET, token, 1000.0) is None, "its time is over"
    assert read_token(b"t" * 32, token, 999.0) is None
    damaged: Iterable[str] = (
        token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :] for place in range(len(token) - 1)
    )
    assert [one for one in damaged if read_token(SECRET, one, 999.0) is not None] == []
    assert [read_token(SECRET, one, 999.0) for one in ("", "x", "é", "=" * 9, "A" * 5000)] == [None] * 5


def test_every_wordless_answer_is_one_of_the_contract() -> None:
    assert {f"ANSWER_KIND_{name.upper()}" for name in WORDLESS} <= set(AnswerKind.keys())


async def asking(there: Loopback) -> tuple[Web, Run]:
    """A browser without a session, and a run that asks whether its plan is good."""
    plane = clients(await there.channel())
    run = await plane.asked((await plane.submit(review_plan=True)).id)
    assert ANSWER_KIND_PROCEED in run.question.takes, run.question
    return Web(int(there.gateway.address.rpartition(":")[2]), plane), run


def link(there: Loopback, run: Run, answer: str = "proceed", secret: bytes | None = None, **other: Any) -> str:
    """The path of a link that answers the run's question."""
    expires_at = int(SystemClock().now().timestamp()) + LINK_SECONDS
    offered = replace(OfferedAnswer("local", run.id, run.question.id, answer.upper(), expires_at), **other)
    signed = secret or there.folder.read_secret(CredentialRole.GATEWAY)
    return answer_link(signed, "", offered)


async def test_a_link_shows_the_question_and_its_button_answers_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch, MOCKED) as there:
        browser, run = await asking(there)
        proceed = link(there, run)
        page = await browser.send("GET", proceed)
        assert (page.status, page.headers["cache-control"]) == (200, "no-store")
        assert b"<button>proceed</button>" in page.body
        assert (await browser.plane.get(run.id)).question.id == run.question.id, (
            "a program that opens links answers nothing"
        )
        other = link(there, run, "escalate")
        first = await browser.send("POST", proceed, b"", CLICK)
        again = await browser.send("POST", proceed, b"", CLICK)
        assert (first.status, again.status, again.body) == (200, 200, first.body)
        assert b"Answered: <b>proceed</b>" in first.body
        for method in ("GET", "POST"):
            late = await browser.send(method, other, b"" if method == "POST" else None, CLICK)
            assert b"Answered: <b>proceed</b>" in late.body, "another link shows what was answered"
        assert (await browser.plane.ended(run.id)).state == RUN_STATE_COMPLETE


async def test_a_forged_link_another_site_and_an_answer_that_is_not_taken_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch, MOCKED) as there:
        browser, run = await asking(there)
        for method in ("GET", "POST"):
            forged = await browser.send(method, link(there, run, secret=SECRET), b"" if method == "POST" else None)
            assert forged.status == 404
        evil = {**CLICK, "origin": "http://evil.example", "sec-fetch-site": "cross-site"}
        assert (await browser.send("POST", link(there, run), b"", evil)).status == 403
        roles = [role for role in CredentialRole if role is not CredentialRole.GATEWAY]
        for role in roles:
            by_agent = link(there, run, secret=there.folder.read_secret(role))
            assert (role, (await browser.send("POST", by_agent, b"", CLICK)).status) == (role, 404)
        coders_token = mint(Identity.named(there.folder, "coder/box-1"))
        assert (await browser.send("POST", f"/answer/{coders_token}", b"", CLICK)).status == 404
        earlier = await browser.send("POST", link(there, run, question_id="q-before"), b"", CLICK)
        assert (earlier.status, b"Not answered" in earlier.body) == (409, True), "a link of a question before this one"
        theirs = await browser.send("POST", link(there, run, project="theirs"), b"", CLICK)
        assert theirs.status == 404, "a link of another project's run with this id, or of one that is forgotten"
        refused = await browser.send("POST", link(there, run, "switch"), b"", CLICK)
        assert (refused.status, b"Not answered" in refused.body) == (409, True)
        assert (await browser.plane.get(run.id)).question.id == run.question.id


def test_a_notice_carries_links_for_answers_without_words() -> None:
    run = Run(id="run_1")
    run.question.id, run.question.text = "q1", "again?"
    run.question.takes.extend([ANSWER_KIND_RETRY, AnswerKind.Value("ANSWER_KIND_SKIP")])
    notice = notice_of(run, "http://127.0.0.1:1", lambda one, answer: f"http://127.0.0.1:1/answer/{one.id}-{answer}")
    assert notice.link == "http://127.0.0.1:1/runs/run_1"
    assert dict(notice.answer_links) == {"retry": "http://127.0.0.1:1/answer/run_1-retry"}
    assert b"<http://127.0.0.1:1/answer/run_1-retry|retry>" in body_of(notice, Receiver.SLACK)
    assert notice_of(run, "").answer_links == {}
