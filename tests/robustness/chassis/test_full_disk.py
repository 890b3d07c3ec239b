"""A disk that takes no more: commands are turned away as in an outage, nothing is half written, and work goes on afterwards."""

import hashlib
from pathlib import Path

import pytest
from sqlalchemy import Connection

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage.database import Database, driver_of
from tests.helpers.counter import Add
from tests.helpers.counters import a_caller, assert_sound, opened, rows_of

FULL, WIDE = 1, 1_073_741_823
LARGE = "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(2000))
"""Cannot be packed into a page that is there already."""


class Disk:
    """How many pages the file may have; the writing connection learns it when a transaction begins."""

    def __init__(self, database: Database) -> None:
        self.pages = WIDE
        self._plain_begin = database.begin
        database.begin = self._begin  # type: ignore[method-assign]

    def _begin(self, connection: Connection) -> None:
        self._plain_begin(connection)
        driver_of(connection).execute(f"PRAGMA max_page_count = {self.pages}")


async def test_a_full_disk_is_an_outage_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path / 'store.db'}") as counters:
        disk = Disk(counters.store.database)
        await counters.ledger.submit(a_caller(), Add("c1", 1))
        disk.pages = FULL
        with pytest.raises(Refusal) as refused:
            await counters.ledger.submit(a_caller("large"), Add("c1", 1, (LARGE,)))
        assert refused.value.reason is Reason.UNAVAILABLE
        assert len(await rows_of(counters, "journal")) == 1
        disk.pages = WIDE
        await counters.ledger.submit(a_caller("large"), Add("c1", 1, (LARGE,)))
        assert len(await rows_of(counters, "journal")) == 2
        await assert_sound(counters)
