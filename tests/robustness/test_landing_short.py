"""A small campaign of landing, in every test run: two of four branches conflict, and the integrator is killed once."""

from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from tests.helpers.limits import scaled
from tests.robustness.landing.campaign import Terms, campaign


@pytest.mark.timeout(240)
async def test_nothing_is_lost_unproven_or_landed_twice_when_branches_conflict_and_the_integrator_dies(
    tmp_path: Path,
) -> None:
    terms = Terms(branches=4, seconds=1, kill_looks=1, most_kills=1, lease_seconds=scaled(3))
    result = await campaign(tmp_path, terms)
    assert result.is_safe, result.figures()
    assert (result.incomplete, len(result.pairs()), result.kills) == ({}, 1, 1)
    assert {entry.state for entry in result.entries} == {pb.ENTRY_STATE_LANDED}
    assert sum(len(entry.links) for entry in result.entries) == 1, "the second of both was brought over by a linked run"
