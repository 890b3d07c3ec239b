"""Our client of the Agent Client Protocol with an agent of the SDK: prompt, files, terminals, permissions, usage, ends."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("acp", reason="the extra `pointsman[acp]` is not installed")

from pointsman.acp.order import Order
from pointsman.usage.output import AgentOutput
from tests.helpers.limits import scaled

AGENT = Path(__file__).with_name("scripted_agent.py")
CODE = "import sys; from pointsman.acp.bridge import main; main(sys.argv[1:])"


def line(behaviour: str, folder: Path, **given: Any) -> list[str]:
    order = Order((str(folder),), **given)
    return [sys.executable, "-c", CODE, order.line(), sys.executable, str(AGENT), behaviour]


def play(behaviour: str, folder: Path) -> tuple[int, list[dict[str, Any]], bytes]:
    done = subprocess.run(
        line(behaviour, folder), input=b"do it", stdout=subprocess.PIPE, timeout=scaled(40), check=False
    )
    return done.returncode, [json.loads(one) for one in done.stdout.splitlines()], done.stdout


def test_a_turn_with_files_terminals_permissions_and_usage(tmp_path: Path) -> None:
    code, events, printed = play("works", tmp_path)
    said = [event["text"] for event in events if event["type"] == "message"]
    assert said == [
        "read two",
        "made.txt: allow_once",
        "passwd: reject_once",
        "outside: Invalid params",
        "from the terminal, 3",
    ]
    assert code == 0
    assert (tmp_path / "made.txt").read_text() == "one\ntwo\n"
    output = AgentOutput("acp-json", lambda _chunk: None)
    output.write(printed)
    assert output.used is not None
    assert (output.used.tokens, output.used.cost_micros) == (321, 500_000)
    assert [(call.kind, call.failed) for call in output.tool_calls.values()] == [
        ("read", False),
        ("execute", True),
        ("other", False),
    ], "the last one was told of only by asking for it, and was allowed"
    assert all(
        call.begin_ns > 0 and (call.end_ns == 0 or call.end_ns >= call.begin_ns) for call in output.tool_calls.values()
    )


@pytest.mark.parametrize(
    ("behaviour", "said"), [("crashes", "exit code 7"), ("refuses", "refusal"), ("nothing-like-it", "")]
)
def test_an_end_that_is_no_end_of_a_turn_is_an_error(tmp_path: Path, behaviour: str, said: str) -> None:
    code, events, _ = play(behaviour, tmp_path)
    assert code == 1
    assert said in str(events[-1]["message"])
    assert events[-1]["type"] == "error"


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CODE, Order((str(tmp_path),)).line(), "no-such-agent"]
    done = subprocess.run(command, input=b"", stdout=subprocess.PIPE, timeout=scaled(40), check=False)
    assert done.returncode == 1
    assert "no-such-agent" in json.loads(done.stdout)["message"]


def test_a_signal_cancels_the_turn_as_the_protocol_says(tmp_path: Path) -> None:
    process = subprocess.Popen(line("waits", tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdout as printed:
        process.stdin.close()
        while b"waiting" not in printed.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert b"cancelled" in printed.read()
    assert process.wait(scaled(20)) == 1


@pytest.mark.parametrize(("answer", "said"), [("allow", "allow_once"), ("deny", "reject_once")])
def test_what_the_policy_does_not_decide_waits_for_the_answer_of_a_person(
    tmp_path: Path, answer: str, said: str
) -> None:
    tree, answers = tmp_path / "tree", tmp_path / "answers"
    for folder in (tree, answers):
        folder.mkdir()
    command = line("asks", tree, answers=str(answers), ask_before=("fetch",))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as printed:
        asked = next(event for event in map(json.loads, printed) if event["type"] == "permission_request")
        assert (asked["kind"], asked["places"]) == ("fetch", [])
        assert asked["title"] == 'look something up {"url": "http://localhost"}'
        (answers / asked["key"]).write_text(answer)
        rest = [json.loads(one) for one in printed]
    assert process.wait(scaled(20)) == 0
    assert [event["text"] for event in rest if event["type"] == "message"] == [said, "edit: reject_once"]


@pytest.mark.parametrize(
    ("able", "resumed", "said"),
    [("loads", True, "loaded s0"), ("resumes", True, "resumed s0"), ("forgot", False, "new"), ("works", False, "")],
)
def test_a_session_goes_on_where_the_agent_says_that_it_can(
    tmp_path: Path, able: str, resumed: bool, said: str
) -> None:
    done = subprocess.run(
        line(able, tmp_path, session="s0"), input=b"do it", stdout=subprocess.PIPE, timeout=scaled(40), check=False
    )
    events = [json.loads(one) for one in done.stdout.splitlines()]
    session = next(event for event in events if event["type"] == "session")
    assert (session["resumed"], session["id"]) == (resumed, "s0" if resumed else "s1")
    assert session["again"] == (able != "works")
    assert said in str(events)
    assert "said before" not in str(events)
    assert done.returncode == 0
