"""What runs ask of whoever looks, on both databases: counted, listed, searched, by end, with who is at work on them."""

from pathlib import Path

import grpc
import pytest

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.model import Budget, Order, Routing
from pointsman.services.orchestrator.domain.views import RunCounts
from pointsman.services.orchestrator.store import OrchestratorStore, listing, run_queries
from tests.contract.orchestrator.orchestrators import caller, orchestrator, researching
from tests.contract.orchestrator.test_service import CODE, poll, reason_of
from tests.scenarios.planes import NOBODY, Plane, plane

PARSER, LEXER = "Fix the parser in src/parser.py", "Write tests for src/LEXER.py and 100% of it"


async def ids(here: Plane, **wanted: object) -> list[str]:
    answer = await here.runs.ListRuns(pb.ListRunsRequest(**wanted))  # type: ignore[arg-type]
    return [run.id for run in answer.runs]


async def counted(here: Plane) -> dict[str, int]:
    answer = await here.runs.CountRuns(pb.CountRunsRequest())
    return {field.name: value for field, value in answer.ListFields() if field.name != "newest_position"}


async def one_of_each(here: Plane) -> dict[str, str]:
    """A run that is stuck, one that an agent works on, one that asks, one that was cancelled."""
    at_work = (await here.submit(PARSER, labels={"team": "a"})).id
    await here.reached(at_work, runs.RUN_STATE_CODER_EXEC)
    await poll(here, "ada", CODE)
    cancelled = (await here.submit(LEXER)).id
    await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=cancelled, reason="not wanted"))
    first = (await here.submit("Fix the printer in src/printer.py", session_id="s")).id
    asks = (await here.submit("Fix the scanner in src/scanner.py", session_id="s")).id
    await here.reached(asks, runs.RUN_STATE_ASK_SWITCH)
    await here.reached(first, runs.RUN_STATE_CODER_EXEC)
    return {"working": at_work, "cancelled": cancelled, "stuck": first, "needs_you": asks}


async def test_each_run_asks_one_thing_and_the_counts_say_so(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url, present_seconds=0.001) as here:
        made = await one_of_each(here)
        answer = await here.runs.CountRuns(pb.CountRunsRequest())
        assert answer.ByteSize() < 2000
        assert answer.newest_position > 0
        assert await counted(here) == {"needs_you": 1, "stuck": 1, "working": 1, "cancelled": 1}
        for name, run_id in made.items():
            kind = runs.Attention.Value(f"ATTENTION_{name.upper()}")
            assert await ids(here, attention=[kind]) == [run_id], name
            assert (await here.get(run_id)).attention == kind
        live = [runs.ATTENTION_STUCK, runs.ATTENTION_WORKING, runs.ATTENTION_NEEDS_YOU]
        assert set(await ids(here, attention=live)) == set(made.values()) - {made["cancelled"]}
        assert len(await ids(here, attention=[*live, runs.ATTENTION_CANCELLED])) == 4


async def test_a_wait_for_an_agent_names_who_is_at_work_and_how_many_could_be(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run = await here.submit(PARSER)
        await here.reached(run.id, runs.RUN_STATE_CODER_EXEC)
        waiting = (await here.get(run.id)).waiting_for
        assert (waiting.holder, waiting.agents_able, waiting.HasField("heard_at")) == ("", 0, False)
        reviews = agent.Wanted(capabilities=[assignments.CAPABILITY_REVIEW])
        await here.agents.Poll(agent.PollRequest(request_id="r", agent_id="eve", wanted=reviews))
        assert (await here.get(run.id)).attention == runs.ATTENTION_STUCK
        await poll(here, "ada", CODE)
        waiting = (await here.get(run.id)).waiting_for
        assert (waiting.holder, waiting.agents_able) == ("ada", 0)
        assert abs(waiting.heard_at.ToMicroseconds() - waiting.since.ToMicroseconds()) < 600_000_000
        another = await here.submit(LEXER)
        await here.reached(another.id, runs.RUN_STATE_CODER_EXEC)
        (listed,) = (await here.runs.ListRuns(pb.ListRunsRequest(text="lexer"))).runs
        assert (listed.waiting_for.holder, listed.waiting_for.agents_able) == ("", 1)
        assert listed.attention == runs.ATTENTION_WORKING
        known = (await here.agents.ListAgents(agent.ListAgentsRequest())).agents
        assert [(one.id, list(one.repository_ids)) for one in known] == [("ada", []), ("eve", [])]


async def test_runs_are_found_by_all_words_of_their_text(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        parser = (await here.submit(PARSER, labels={"team": "payments"}, session_id="monday")).id
        lexer = (await here.submit(LEXER)).id
        expected = {
            "PARSER": [parser], "src": [lexer, parser], "tests lexer": [lexer], "lexer parser": [],
            "100% of": [lexer], "_": [], "team=payments": [parser], "monday fix": [parser], parser[4:20]: [parser],
            "lexer src/lexer.py write tests for and 100% of nothing": [lexer],
        }  # fmt: skip
        for text, found in expected.items():
            wanted = found if text != "_" else [lexer, parser]
            assert await ids(here, text=text) == wanted, text
        await here.reached(parser, runs.RUN_STATE_CODER_EXEC)
        changed = pb.ChangeRequirementRequest(request_id="x", run_id=parser, message="Also the Zebra")
        await here.runs.ChangeRequirement(changed)
        assert await ids(here, text="zebra") == [parser]


async def test_ended_runs_come_in_the_order_of_their_end_and_page(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        made = [(await here.submit(f"Fix number {number} in src/parser.py")).id for number in range(5)]
        order = [made[2], made[0], made[4]]
        for run_id in order:
            await here.runs.CancelRun(pb.CancelRunRequest(request_id=here.request_id(), run_id=run_id))
        found: list[str] = []
        token = ""
        while True:
            page = common.Page(page_size=2, page_token=token)
            answer = await here.runs.ListRuns(pb.ListRunsRequest(order=pb.RUN_ORDER_ENDED, page=page))
            found += [run.id for run in answer.runs]
            token = answer.next_page_token
            if not token:
                break
        assert found == order[::-1]
        assert (await here.get(made[2])).HasField("ended_at")
        assert not (await here.get(made[1])).HasField("ended_at")
        assert await ids(here, order=pb.RUN_ORDER_ENDED, attention=[runs.ATTENTION_FAILED]) == []


async def test_labels_are_set_and_taken_away_also_after_the_end(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run = await here.submit(PARSER, labels={"team": "a"})
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=run.id))
        ended_at = (await here.get(run.id)).ended_at
        wanted = pb.LabelRunRequest(request_id="l", run_id=run.id, labels={"team": "", "customer": "Kiwi"})
        labelled = (await here.runs.LabelRun(wanted)).run
        assert dict(labelled.labels) == {"customer": "Kiwi"}
        assert (labelled.state, labelled.ended_at) == (runs.RUN_STATE_CANCELLED, ended_at)
        assert await ids(here, text="customer=kiwi") == [run.id]
        assert await ids(here, text="team=a") == []
        assert await ids(here, labels={"customer": "Kiwi"}) == [run.id]
        many = pb.LabelRunRequest(request_id="m", run_id=run.id, labels={f"k{n}": "v" for n in range(32)})
        assert await reason_of(here.runs.LabelRun(many)) == Reason.INVALID_FIELD


async def test_a_line_leaves_out_what_a_list_has_no_room_for(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run = await here.submit(f"{PARSER} {'and more ' * 2000}")
        await here.reached(run.id, runs.RUN_STATE_CODER_EXEC)
        (line,) = (await here.runs.ListRuns(pb.ListRunsRequest(view=pb.RUN_VIEW_LINE))).runs
        (whole,) = (await here.runs.ListRuns(pb.ListRunsRequest())).runs
        assert (len(line.tasks), len(whole.tasks)) == (0, 1)
        assert line.grades.tasks == 1
        assert line.ByteSize() < 1500 < whole.ByteSize()


async def test_one_call_looks_at_so_many_runs_and_the_next_goes_on(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (run_queries, listing):
        monkeypatch.setattr(module, "MOST_EXAMINED", 2)
    async with plane(tmp_path, NOBODY, database_url) as here:
        wanted = (await here.submit("Fix the needle in src/needle.py")).id
        for number in range(7):
            await here.submit(f"Fix straw {number} in src/hay.py")
        calls, token = 0, ""
        found: list[str] = []
        while True:
            request = pb.ListRunsRequest(text="needle", page=common.Page(page_token=token))
            answer = await here.runs.ListRuns(request)
            calls, found, token = calls + 1, [*found, *(run.id for run in answer.runs)], answer.next_page_token
            if not token:
                break
        assert found == [wanted]
        assert 2 <= calls <= 5
        everything = pb.ListRunsRequest(page=common.Page(page_size=8))
        assert len((await here.runs.ListRuns(everything)).runs) <= 3


async def index_of(store: OrchestratorStore) -> dict[str, tuple[object, ...]]:
    index = store.children.index
    rows = await store.store.database.read(lambda connection: connection.execute(index.select()).all())
    return {row.entity_id: (row.outcome, row.asked_at_us > 0, row.words) for row in rows}


async def test_what_the_version_before_wrote_is_filled_in(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        for run_id in ("run_lives", "run_ended"):
            await researching(store, run_id)
        await store.ledger.submit(caller(), commands.Cancel("run_ended", "no"))
        unsure = commands.Submit("run_asks", "something", Order(Routing("d1", 0.3), "local"), Budget())
        await store.ledger.submit(caller(), unsure)
        as_written = await index_of(store)
        assert {run_id: row[:2] for run_id, row in as_written.items()} == {
            "run_lives": ("", False), "run_ended": ("CANCELLED", False), "run_asks": ("", True),
        }  # fmt: skip
        index = store.children.index
        for old in ({"outcome": "?", "asked_at_us": 0, "words": ""}, {"asked_at_us": 0}, {"outcome": ""}):
            await store.store.write(lambda connection: connection.execute(index.update().values(**old)).rowcount)  # noqa: B023
            assert not await store.run_index.fill()
            assert await index_of(store) == as_written
        counts = await store.store.database.read(lambda connection: store.attention.counts(connection, "local"))
        assert counts == RunCounts(needs_you=1, stuck=0, working=1, failed=0, done=0, cancelled=1)


async def test_what_verifiers_for_all_runs_say_about_their_repositories_is_listed_and_of_nobody_else(
    tmp_path: Path, database_url: str
) -> None:
    said = [agent.OfferedRepository(id=name, name="shop", branch="main", head="a" * 40) for name in ("own", "foreign")]
    async with plane(tmp_path, NOBODY, database_url) as here:
        for agent_id, capability, run_ids in (
            ("verifier", assignments.CAPABILITY_VERIFY, ()),
            ("of-a-run", assignments.CAPABILITY_VERIFY, ("run_a",)),
            ("coder", assignments.CAPABILITY_CODE, ()),
        ):
            wanted = agent.Wanted(capabilities=[capability], repository_ids=["own"], repositories=said, run_ids=run_ids)
            request = agent.PollRequest(request_id=here.request_id(), agent_id=agent_id, wanted=wanted)
            await here.agents.Poll(request)
        listed = (await here.agents.ListAgents(agent.ListAgentsRequest())).agents
        assert {one.id: list(one.repositories) for one in listed} == {"verifier": said[:1], "of-a-run": [], "coder": []}


async def test_only_a_verifier_for_all_runs_says_where_a_branch_is_that_work_starts_from(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:

        async def says(agent_id: str, commit: str, able: list[assignments.Capability.ValueType], *run_ids: str) -> None:
            offer = agent.OfferedRepository(
                id="own", head=commit, branches=[agent.BranchHead(branch="main", commit=commit)]
            )
            known = {"repository_ids": ["own"], "repositories": [offer], "run_ids": run_ids}
            wanted = agent.Wanted(capabilities=able, **known)  # type: ignore[arg-type]
            await here.agents.Poll(agent.PollRequest(request_id=here.request_id(), agent_id=agent_id, wanted=wanted))

        async def base(message: str) -> str:
            started = await here.submit(message, repository=runs.Repository(id="own", branch="main"))
            return str(started.repository.base_commit)

        await says("coder", "c" * 40, [assignments.CAPABILITY_CODE])
        await says("of-a-run", "d" * 40, [assignments.CAPABILITY_VERIFY], "run_a")
        with pytest.raises(grpc.aio.AioRpcError, match="no verifier that is present has the branch 'main'"):
            await base(PARSER)
        await says("verifier", "a" * 40, [assignments.CAPABILITY_VERIFY])
        await says("coder", "e" * 40, [assignments.CAPABILITY_CODE])
        assert await base(PARSER) == "a" * 40
        (listed,) = [
            one for one in (await here.agents.ListAgents(agent.ListAgentsRequest())).agents if one.repositories
        ]
        assert (listed.id, len(listed.repositories[0].branches)) == ("verifier", 0)
