"""A little bad input in every test run; `make abuse` sends the rest."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.robustness.abuse.__main__ import abuse
from tests.robustness.abuse.target import content_of


def test_bad_input_is_refused_with_documented_codes_and_changes_nothing() -> None:
    findings = abuse(400, seed=7)
    assert findings.problems == []
    assert findings.undocumented == {}
    assert findings.codes["INVALID_ARGUMENT"] > 100
    assert findings.statuses[400] > 5
    assert sum(findings.statuses.values()) > 40, "what was refused over HTTP was sent again"


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
