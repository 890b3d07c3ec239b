"""What bad input has found: durations that reach back before the calendar begins."""

from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

from pointsman.api.pipeline.v1 import requests_pb2
from tests.contract.pipeline.pipelines import served

LONGEST_SECONDS = 315_576_000_000


@pytest.mark.parametrize("seconds", [10**10, LONGEST_SECONDS])
async def test_cleaning_up_what_ended_thousands_of_years_ago_finds_nothing(tmp_path: Path, seconds: int) -> None:
    async with served(f"sqlite:///{tmp_path / 'store.db'}") as client:
        request = requests_pb2.CleanUpRequest(request_id="r1", older_than=Duration(seconds=seconds))
        assert (await client.stub.CleanUp(request)).pipelines == 0
