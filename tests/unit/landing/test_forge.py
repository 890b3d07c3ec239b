"""What is asked of a forge, what it may answer, what a pull request tells, and where its token never goes."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from pointsman.api.handoff.v1 import delivery_pb2, handoff_pb2, proof_pb2, work_pb2
from pointsman.api.orchestrator.v1 import evidence_pb2
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.landing.forge import Check, CheckState, Draft, ForgeAway, ForgeRefused
from pointsman.landing.forge.choice import forge_of, host_and_path, token_for, without_secrets
from pointsman.landing.forge.credentials import Token, UnusableToken, find_token, git_variables
from pointsman.landing.forge.github import GitHub
from pointsman.landing.forge.gitlab import GitLab, check_of
from pointsman.landing.forge.plain import PlainRemote
from pointsman.landing.request_body import MAX_BODY, RequestContent, marker, request_body, trace_of
from tests.helpers.github import LOGS, FakeGitHub, check_run, review
from tests.helpers.gitlab import FakeGitLab
from tests.helpers.rest_schema import GITHUB
from tests.unit.landing.lives import commit_of, fake_forge

SECRET = "ghp_secret_of_the_forge"
DRAFT = Draft("a title", "a body", "pointsman/run_1", "main")


async def test_a_limit_and_a_broken_server_may_pass_and_a_refusal_does_not() -> None:
    fake = FakeGitHub()
    forge = fake_forge(fake)
    fake.trouble = [(403, {"Retry-After": "7"}), (429, {}), (403, {"X-RateLimit-Remaining": "0"}), (503, {}), (403, {})]
    waits = []
    for _ in range(4):
        with pytest.raises(ForgeAway) as away:
            await forge.request(1)
        waits.append(away.value.retry_after_seconds)
    assert waits == [7.0, 60.0, 60.0, 0.0]
    with pytest.raises(ForgeRefused, match="HTTP 403 not now"):
        await forge.request(1)
    with pytest.raises(ForgeRefused, match="HTTP 404 Not Found"):
        await forge.request(1)


@pytest.mark.parametrize("status", [301, 307])
async def test_a_repository_that_was_renamed_is_read_where_it_is_and_written_to_only_by_its_new_address(
    status: int,
) -> None:
    fake = FakeGitHub(heads={"pointsman/run_1": commit_of("head")})
    forge = fake_forge(fake)
    fake.trouble = [(status, {"Location": "https://api.github.com/repositories/1/pulls"})]
    with pytest.raises(ForgeRefused, match=r"has moved .*git remote set-url"):
        await forge.open(DRAFT)
    assert fake.pulls == [], "a POST that is redirected must not become a GET"
    number = (await forge.open(DRAFT)).number
    fake.trouble = [(status, {"Location": f"https://api.github.com/repos/o/renamed/pulls/{number}"})]
    assert (await forge.request(number)).number == number


async def test_a_log_that_lies_on_another_host_is_read_without_the_token() -> None:
    fake = FakeGitLab(logs={3: "red"})
    fake.trouble = [(302, {"Location": f"https://{LOGS}/3"})]
    assert await fake_forge(fake).log_of(Check("ci", CheckState.FAILED, job_id=3)) == "red"
    assert fake.problems == []


async def test_every_page_is_read_and_the_last_word_of_a_reviewer_counts() -> None:
    fake = FakeGitHub(heads={"pointsman/run_1": commit_of("head")})
    forge = fake_forge(fake)
    request = await forge.open(DRAFT)
    assert [one.number for one in await forge.find("pointsman/run_1")] == [request.number]
    states = ["CHANGES_REQUESTED", "COMMENTED", "APPROVED"]
    fake.pulls[0].reviews = [
        {"user": {"login": "grace"}, "state": state, "body": "x", "commit_id": "c", "html_url": "https://u.test"}
        for state in states
    ]
    (review,) = await forge.reviews(request.number)
    assert not review.asks_for_changes
    fake.checks = {commit_of("head"): [check_run(1, "success"), check_run(2, None), check_run(3, "timed_out")]}
    states_of = [check.state for check in await forge.checks(commit_of("head"))]
    assert states_of == [CheckState.PASSED, CheckState.PENDING, CheckState.FAILED]
    assert fake.problems == []


async def test_jobs_threads_and_reviewers_of_gitlab_are_read_as_checks_and_reviews() -> None:
    fake = FakeGitLab(heads={"pointsman/run_1": commit_of("head")}, logs={3: "red"})
    forge = fake_forge(fake)
    number = (await forge.open(DRAFT)).number
    conclusions = ("success", None, "failure")
    fake.checks = {commit_of("head"): [check_run(place, said) for place, said in enumerate(conclusions, 1)]}
    checks = await forge.checks(commit_of("head"))
    assert [check.state for check in checks] == [CheckState.PASSED, CheckState.PENDING, CheckState.FAILED]
    assert [await forge.log_of(check) for check in checks] == ["", "", "red"]
    fake.pulls[0].reviews = [review(commit_of("old"), "rename it"), review(commit_of("head"), "and test it")]
    (asked,) = await forge.reviews(number)
    assert (asked.author, asked.asks_for_changes, asked.commit, asked.text) == (
        "grace", True, commit_of("head"), "and test it",
    )  # fmt: skip
    fake.open_threads = True
    assert [(one.commit, one.text) for one in await forge.reviews(number)] == [
        (commit_of("old"), "rename it"), (commit_of("head"), "and test it"),
    ]  # fmt: skip
    assert fake.problems == []


def test_what_may_fail_is_skipped_or_waits_for_a_hand_does_not_hold_a_merge_request_up() -> None:
    states = {
        status: check_of({"id": 1, "name": "ci", "status": status, "allow_failure": may_fail}).state
        for status, may_fail in (("failed", True), ("skipped", False), ("manual", False), ("canceled", False))
    }
    assert states == {
        **dict.fromkeys(("failed", "skipped", "manual"), CheckState.PASSED),
        "canceled": CheckState.FAILED,
    }


def test_a_request_that_the_description_does_not_know_is_noticed() -> None:
    assert GITHUB.problems_of("GET", "/repos/o/r/branches", {}, None)
    assert GITHUB.problems_of("POST", "/repos/o/r/pulls", {}, {"head": "a"}) == ["'base' is a required property"]
    assert GITHUB.problems_of("POST", "/repos/o/r/pulls", {}, {"head": "a", "base": "b", "labels": []}) == [
        "field labels"
    ]
    assert GITHUB.problems_of("POST", "/repos/o/r/pulls", {}, {"head": 7, "base": "b"}) == ["7 is not of type 'string'"]
    assert GITHUB.problems_of("GET", "/repos/o/r/pulls", {"state": "merged"}, None) == ["query state=merged"]
    assert GITHUB.problems_of("GET", "/repos/o/r/pulls", {"page": "two", "colour": "red"}, None) == [
        "query page=two",
        "query colour=red",
    ]


def test_an_answer_that_the_description_does_not_know_is_noticed() -> None:
    operation = GITHUB.operation_of("GET", "/repos/o/r/pulls/1")
    assert operation is not None
    least = GITHUB.completed(operation, 200, {})
    assert GITHUB.problems_of_answer(operation, 200, least) == []
    for wrong in ({**least, "number": "one"}, {**least, "state": "merged"}, {"number": 1}):
        assert GITHUB.problems_of_answer(operation, 200, wrong)
    assert GITHUB.problems_of_answer(operation, 201, least)


async def test_the_least_answers_that_the_description_allows_are_understood() -> None:
    fake = FakeGitHub(heads={"pointsman/run_1": commit_of("head")})
    forge = fake_forge(fake)
    number = (await forge.open(DRAFT)).number
    fake.pulls[0].reviews = [{"state": "CHANGES_REQUESTED", "user": None, "commit_id": None, "body": ""}]
    fake.checks = {commit_of("head"): [check_run(1, "failure")]}
    fake.logs[1] = "what it printed"
    (check,) = await forge.checks(commit_of("head"))
    assert await forge.log_of(check) == "what it printed", "the token stays with the API"
    assert await forge.log_of(replace(check, job_id=2)) == check.summary
    (review,) = await forge.reviews(number)
    assert (review.author, review.asks_for_changes, review.commit) == ("", True, "")
    assert ((await forge.request(number)).merged_commit, fake.problems) == ("", [])


async def test_a_token_comes_from_the_environment_a_private_file_or_gh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await find_token({"GH_TOKEN": f"{SECRET}\n"}) == Token(SECRET)
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o600)
    assert await find_token({"POINTSMAN_FORGE_TOKEN_FILE": str(file)}) == Token(SECRET)
    file.chmod(0o644)
    with pytest.raises(UnusableToken, match="can be read by others"):
        await find_token({"POINTSMAN_FORGE_TOKEN_FILE": str(file)})
    program = tmp_path / "gh"
    program.write_text(f'#!/bin/sh\n[ "$1 $2 $3 $4" = "auth token --hostname github.com" ] && echo {SECRET}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await find_token({}) == Token(SECRET)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert await find_token({}) is None


async def test_the_token_is_shown_to_its_forge_only_and_printed_nowhere() -> None:
    environment = {"GITHUB_TOKEN": SECRET}
    for address in ("https://evil.test/o/r.git", "http://github.com.evil.test/o/r", "https://github.com@evil.test/o/r"):
        assert await token_for(address, environment) is None
        assert isinstance(await forge_of(address, environment), PlainRemote)
    token = await token_for("https://github.com/o/r.git", environment)
    variables = git_variables("https://github.com/o/r.git", token)
    assert variables["GIT_CONFIG_KEY_0"] == "http.https://github.com/.extraHeader"
    assert git_variables("http://github.com/o/r.git", token) == {}, "never without TLS"
    assert SECRET not in repr(token)
    fake = FakeGitHub(trouble=[(401, {})])
    forge = fake_forge(fake)
    with pytest.raises(ForgeRefused) as refused:
        await forge.open(DRAFT)
    assert SECRET not in f"{refused.value!r}{forge!r}"
    assert isinstance(await forge_of("git@github.com:o/r.git", environment), GitHub)


async def test_each_forge_sees_its_own_token_and_never_that_of_the_other() -> None:
    both = {"GH_TOKEN": SECRET, "GITLAB_TOKEN": "glpat_secret", "CI_SERVER_URL": "https://git.example.test"}
    assert await token_for("https://github.com/o/r.git", both) == Token(SECRET)
    assert await token_for("https://git.example.test/group/sub/r.git", both) == Token("glpat_secret")
    assert await token_for("https://gitlab.com/o/r.git", both) is None, "the server of the environment is another"
    assert await token_for("https://git.example.test/o/r", {**both, "GITLAB_TOKEN": ""}) is None
    forge = await forge_of("git@git.example.test:group/sub/r.git", both)
    assert isinstance(forge, GitLab)
    sent = forge.rest.session.prepare_request(requests.Request("GET", "https://git.example.test"))
    assert [value for value in sent.headers.values() if "secret" in value] == ["Bearer glpat_secret"]


def test_addresses_are_read_in_every_form_and_shown_without_passwords() -> None:
    assert host_and_path("git@github.com:o/r.git") == ("github.com", "o/r.git")
    assert host_and_path("ssh://git@github.com/o/r") == ("github.com", "/o/r")
    assert host_and_path("/srv/remote.git") == ("", "")
    assert without_secrets("https://me:pw@host.test/o/r") == "https://host.test/o/r"


def told(statement: str) -> RequestContent:
    claim = handoff_pb2.Claim(id="C1", statement=statement, evidence_ids=["E1"])
    files = [
        handoff_pb2.ChangedFile(path=path, change=handoff_pb2.FILE_CHANGE_MODIFIED)
        for path in ("tests/test_a.py", "a.py")
    ]
    item = delivery_pb2.Deliverable(task_id="T1", statement="do it", claims=[claim], changed_files=files)
    risk = handoff_pb2.ResidualRisk(key="unread", statement="nobody read it")
    delivery = delivery_pb2.Delivery(
        run_id="run_1", deliverables=[item], open_risks=[risk], grade=proof_pb2.GRADE_PROVEN
    )
    evidence = handoff_pb2.Evidence(id="E1", kind=handoff_pb2.EVIDENCE_KIND_COMMAND, command=["make", "test"])
    found = work_pb2.ClaimFinding(claim_id="C1", status=work_pb2.CLAIM_STATUS_SUPPORTED)
    attempt = evidence_pb2.Attempt(
        task_id="T1", work=handoff_pb2.CoderResult(evidence=[evidence]), finding=work_pb2.TaskFinding(claims=[found])
    )
    candidate = pb.LandingCandidate(base="b" * 40, summary="`make test`: 42 tests")
    entry = pb.Entry(id="entry_1", terms=pb.LandingTerms(target="main"), candidate=candidate, work_run_id="run_1")
    trace = trace_of("run_1", f"00-{'a' * 32}-{'b' * 16}-01", "https://console.test/")
    return RequestContent(entry, delivery, (attempt,), trace)


def test_the_body_has_risks_first_then_claims_with_evidence_and_results_then_changed_tests() -> None:
    body = request_body(told("the parser reads tabs"))
    places = [
        body.index(words)
        for words in (
            "### Open risks", "**unread**: nobody read it", "Grade: **PROVEN**",
            "| the parser reads tabs | command: make test (exit code 0) | SUPPORTED |", "### Changed tests",
            "- `tests/test_a.py`", f"[trace](https://console.test/runs/run_1#trace) `{'a' * 32}`", marker("entry_1"),
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert "`a.py`" not in body


def test_words_of_agents_cannot_leave_their_cell_forge_a_marker_or_call_people() -> None:
    hostile = f"ok | SUPPORTED |\n| all | done | {marker('entry_2')} @everyone <script>`x`"
    body = request_body(told(hostile))
    row = next(line for line in body.splitlines() if line.startswith("| ok"))
    assert row.count(" | ") == 2
    assert body.count("<!--") == 1
    assert "@everyone" not in body
    assert "<script>" not in body
    assert len(request_body(told("x" * 4000)).encode()) < MAX_BODY


async def test_gh_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "gh"
    program.write_text("#!/bin/sh\nread nothing < /dev/zero\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("pointsman.landing.forge.credentials.GH_SECONDS", 0.05)
    assert await find_token({}) is None
    await asyncio.sleep(0)
