"""`pointsman route …` and `pointsman thinking` on the router's store, on both databases: what they decide is recorded."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands.route import app as route_app
from pointsman.cli.commands.thinking import app as thinking_app
from pointsman.cli.session.router_client import DEFAULT_DATA, store_path
from pointsman.cli.session.thinking_request import envelope_of, thinking_request
from pointsman.cli.session.thinking_snapshot import take_snapshot
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.router.__main__ import build
from pointsman.services.router.config import RouterSettings
from pointsman.services.router.domain.thinking import route_thinking
from pointsman.services.router.wire import decode, encode
from tests.helpers.migrated import migrated_postgres_database

runner = CliRunner()
TEXTS = ("fix the build in src/", "drop the users table", "what is a monad?", "pwd", "delete all files, just do it")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data directory."""
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store of the router in the data directory, or in PostgreSQL."""
    if request.param == "sqlite":
        assert route("policy").exit_code == 0
        yield data
        return
    with migrated_postgres_database(request.getfixturevalue("postgres")) as url:
        monkeypatch.setenv("POINTSMAN_DATABASE_URL", url)
        yield data


def route(*arguments: str) -> Any:
    return runner.invoke(route_app, list(arguments))


def shown(*arguments: str) -> Any:
    result = route(*arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def journal() -> list[tuple[str, str]]:
    """Kind and payload of everything that the store has recorded."""

    async def read() -> list[tuple[str, str]]:
        service = build(load(StoreSettings), load(RouterSettings))
        assert service.store is not None
        table = service.store.tables.journal
        try:
            found = await service.store.database.read(
                lambda connection: connection.execute(table.select().order_by(table.c.position)).all()
            )
        finally:
            service.store.close()
        return [(row.kind, row.payload) for row in found]

    return asyncio.run(read())


@pytest.mark.usefixtures("store")
def test_a_routed_text_is_recorded_and_a_dry_run_is_not() -> None:
    decided = [shown(text) for text in TEXTS]
    assert shown("--dry-run", "fix it")["recorded"] is False
    assert [one["recorded"] for one in decided] == [True] * len(TEXTS)
    assert shown("stats")["decisions"] == len(TEXTS)
    recorded = [json.loads(payload)["decision_id"] for kind, payload in journal() if kind == "decision"]
    assert recorded == [one["decision_id"] for one in decided]


@pytest.mark.usefixtures("store")
def test_a_recorded_decision_says_the_same_as_one_in_process() -> None:
    for text in TEXTS:
        recorded, dry = shown(text), shown(text, "--dry-run")
        assert recorded.pop("decision_id").startswith("dec_")
        del recorded["recorded"], dry["recorded"], dry["not_recorded"]
        assert recorded == dry
        assert route(text).stdout.splitlines()[:-1] == route(text, "--dry-run").stdout.splitlines()


def test_without_a_store_nothing_is_recorded_or_created_and_only_verbose_says_so(data: Path) -> None:
    quiet, told = route("fix it"), route("fix it", "--verbose")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    assert quiet.stdout == told.stdout
    assert f"not recorded: there is no store at {data / 'router.db'}" in told.stderr
    assert shown("fix it")["recorded"] is False
    assert not data.exists()


def test_the_store_is_where_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POINTSMAN_DATA", raising=False)
    assert StoreSettings.data == Path(DEFAULT_DATA)
    assert store_path().resolve() == load(StoreSettings).directory / "router.db"


@pytest.mark.usefixtures("store")
def test_a_message_that_no_request_takes_is_decided_all_the_same() -> None:
    for text in ("fix it " + "x" * 65_536, "fix the build \udcff"):
        decided = shown(text)
        assert (decided["mode"], decided["recorded"]) == ("ACTION", False)


@pytest.mark.usefixtures("store")
def test_thinking_is_recorded_without_secrets_and_a_dry_run_is_not(tmp_path: Path) -> None:
    state = tmp_path / ".claude" / "state" / "thinking"
    state.mkdir(parents=True)
    (state / "blocker.latest.yaml").write_text("env_check: {TOKEN: sk-abcdefgh12345678, MODE: often}\n")
    options = ["--dir", str(tmp_path), "--latch", str(tmp_path / "latch.lock"), "--json"]
    result = runner.invoke(thinking_app, options)
    envelope = json.loads(result.stdout)
    assert (result.exit_code, envelope["error_code"], envelope["recorded"]) == (1, "SECRET_LEAK", True)
    dry = json.loads(runner.invoke(thinking_app, [*options, "--dry-run"]).stdout)
    for one in (envelope, dry):
        del one["timestamp"], one["recorded"]
    assert envelope == dry
    (recorded,) = [payload for kind, payload in journal() if kind == "thinking"]
    assert json.loads(recorded)["envelope"]["error_code"] == "SECRET_LEAK"
    assert "abcdefgh" not in recorded


@pytest.mark.parametrize(
    "blocker",
    [
        "needs: [RESEARCH]\nenvelope: {status: OK, timestamp: 2025-12-28T10:30:00Z}\n",
        "env_check: {A: maybe, A: SET, B: UNSET}\n",
        "env_check: {'postgres://u:sk-abcdefgh12345678@h': SET}\n",
        "env_check: {" + ", ".join(f"N{number}: SET" for number in range(300)) + ", A: http://x}\n",
        "envelope: {status: ERROR, timestamp: '0001-01-01T00:00:00Z'}\n",
        "[1]",
    ],
)
def test_a_snapshot_is_judged_alike_on_its_way_to_the_router(tmp_path: Path, blocker: str) -> None:
    state = tmp_path / ".claude" / "state" / "thinking"
    state.mkdir(parents=True)
    (state / "blocker.latest.yaml").write_text(blocker, encoding="utf-8")
    (state / "research.latest.yaml").write_text("envelope: {status: OK}\n", encoding="utf-8")
    snapshot, now = take_snapshot(tmp_path, tmp_path / "latch.lock"), SystemClock().now()
    request = thinking_request(snapshot)
    assert "abcdefgh" not in str(request)
    assert len(request.snapshot.blocker.env_check) <= 256
    sent = envelope_of(encode.envelope(route_thinking(decode.snapshot(request.snapshot), now)))
    assert sent == route_thinking(snapshot, now)


@pytest.mark.usefixtures("store")
def test_the_policy_is_shown_and_changed_in_parts(tmp_path: Path) -> None:
    assert (shown("policy")["revision"], shown("policy")["hard_routing"]) == (0, True)
    rules = tmp_path / "own.json"
    rules.write_text('[{"id": "ticket", "effect": "reference", "pattern": "PAINT-[0-9]+"}]', encoding="utf-8")
    assert shown("policy", "--rules", str(rules))["hard_routing"] is True
    changed = shown("policy", "--set", "hard-routing=off")
    assert (changed["revision"], changed["hard_routing"], changed["rules"][0]["id"]) == (2, False, "ticket")
    assert shown("what about PAINT-17?")["rules"][0] == "own.ticket"
    assert "ticket: reference /PAINT-[0-9]+/" in route("policy").stdout
    lost = route("policy", "--set", "hard-routing=on", "--revision", "1")
    assert isinstance(lost.exception, Refusal)
    assert "revision 2" in str(lost.exception)


@pytest.mark.usefixtures("store")
def test_what_becomes_of_doubt_is_set_and_stays_when_something_else_is_changed() -> None:
    assert shown("policy", "--set", "doubt=rules")["doubt"] == "DOUBT_RULES"
    assert "doubt rules" in route("policy").stdout
    assert shown("policy", "--set", "hard-routing=off")["doubt"] == "DOUBT_RULES"
    assert shown("fix it")["rule_set_version"].endswith("/rules")
    assert route("policy", "--set", "doubt=never").exit_code != 0


@pytest.mark.usefixtures("store")
def test_outcomes_lead_to_a_debate_and_a_debate_to_a_verdict() -> None:
    decision = shown("drop the users table", "--session", "s1")["decision_id"]
    failed = ("outcome", decision, "failure", "--error-code", "E1", "--error-text", "boom")
    assert shown(*failed)["reaction"] == "REACTION_NONE"
    assert route(*failed).stdout.startswith("DEBATE_FAILURE (two failures)")
    assert shown("outcome", decision, "start-fresh")["consecutive_failures"] == 0
    against = ("--objection", "no backup", "--severity", "high", "--counter", "rename it")
    weighed = shown("debate", decision, "planning", "--confidence", "0.9", *against)
    assert (weighed["verdict"], weighed["stakes"]) == ("VERDICT_MODIFY", "STAKES_HIGH")
    assert route("debate", decision, "failure", "--confidence", "0.9").stdout.startswith("PIVOT")
    assert shown("drop the users table", "--session", "s1")["debate_bypass"] == "already_debated"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("policy", "--set", "soft=on"), "--set takes hard-routing=on"),
        (("policy", "--revision", "1"), "--revision goes with a change"),
        (("policy", "--rules", "/nope.json"), "/nope.json"),
        (("outcome", "dec_1", "maybe"), "known are success, failure, user-rejected"),
        (("outcome", "dec_1", "success", "--error-code", "E1"), "go with the outcome failure"),
        (("debate", "dec_1", "loud", "--confidence", "1"), "known are planning, failure"),
        (("debate", "dec_1", "planning", "--confidence", "2"), "--confidence"),
        (("debate", "dec_1", "planning", "--confidence", "1", "--objection", "x"), "--objection needs --severity"),
        (("debate", "dec_1", "planning", "--confidence", "1", "--severity", "x"), "known are low, medium, high"),
    ],
)
def test_what_a_command_of_the_router_cannot_follow_is_named(
    data: Path, arguments: tuple[str, ...], words: str
) -> None:
    result = route(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert not data.exists()
