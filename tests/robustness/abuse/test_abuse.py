"""A little bad input in every test run; `make abuse` sends the rest."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc

from tests.helpers.limits import scaled
from tests.robustness.abuse.__main__ import abuse
from tests.robustness.abuse.credentials import Shown, Wallet
from tests.robustness.abuse.leases import wrong_keys
from tests.robustness.abuse.target import CREDENTIALS, content_of, target


def test_bad_input_is_refused_with_documented_codes_and_changes_nothing() -> None:
    findings = abuse(400, seed=7)
    assert findings.problems == []
    assert findings.undocumented == {}
    assert findings.codes["INVALID_ARGUMENT"] > 100
    assert findings.codes["UNAUTHENTICATED"] > 20, "some of it came from nobody"
    assert findings.codes["PERMISSION_DENIED"] > 0, "and some from a role that may not"
    assert findings.statuses[400] > 5
    assert findings.statuses[401] > 0
    assert sum(findings.statuses.values()) > 40, "what was refused over HTTP was sent again"


async def test_every_header_that_is_nobodys_is_refused_and_every_odd_token_of_a_role_is_that_role(
    tmp_path: Path,
) -> None:
    with target(tmp_path, CREDENTIALS) as process:
        wallet, found = Wallet(tmp_path), {}
        async with grpc.aio.insecure_channel(process.local_address) as channel:
            for shown in (*wallet.worthless, *wallet.of_other_roles):
                found[shown.what] = await _code(channel, shown)
        nobodys = {shown.what for shown in wallet.worthless}
        assert {code for what, code in found.items() if what not in nobodys} == {"OK"}
        assert {code for what, code in found.items() if what in nobodys - {"8 KiB"}} == {"UNAUTHENTICATED"}
        assert found["8 KiB"] in ("UNAUTHENTICATED", "RESOURCE_EXHAUSTED"), "gRPC itself may refuse so long a header"
        assert len(nobodys) > 50
        assert "Traceback" not in process.log


async def _code(channel: grpc.aio.Channel, shown: Shown) -> str:
    """The code of a read that every role may do."""
    method: Any = channel.unary_unary("/pointsman.api.orchestrator.v1.OrchestratorService/ListRuns")
    try:
        await method(b"", metadata=shown.metadata, timeout=scaled(20))
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK"


async def test_a_key_that_is_not_quite_the_leases_is_good_for_nothing(tmp_path: Path) -> None:
    with target(tmp_path, CREDENTIALS) as process:
        async with grpc.aio.insecure_channel(process.local_address) as channel:
            assert await wrong_keys(channel, Wallet(tmp_path)) == []


def test_a_change_of_a_row_in_place_is_seen(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "store.db")) as store:
        store.execute("CREATE TABLE runs (id TEXT, state TEXT)")
        store.execute("INSERT INTO runs VALUES ('run_1', 'CODER_EXEC')")
        store.commit()
        before = content_of(tmp_path)
        assert content_of(tmp_path) == before
        store.execute("UPDATE runs SET state = 'COMPLETE'")
        store.commit()
    assert content_of(tmp_path) != before
