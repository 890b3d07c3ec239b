"""How deep a reader of one Submit has to go."""

from pathlib import Path

from tests.bench.depth import deepest_of_submit

AIM = 15


async def test_no_chain_of_calls_of_a_submit_is_deeper_than_the_aim(tmp_path: Path) -> None:
    deepest = await deepest_of_submit(tmp_path)
    assert deepest.keys() == {"MainThread", "orchestrator-write"}
    assert {thread: chain for thread, chain in deepest.items() if len(chain) > AIM} == {}
