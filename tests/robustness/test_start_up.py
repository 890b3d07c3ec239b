"""How soon a process serves again follows from what it has to load: only what it needs."""

import subprocess
import sys
from pathlib import Path

START = """
import sys
from pathlib import Path
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.orchestrator.__main__ import MIGRATIONS

migrate(Database(sys.argv[1], "orchestrator"), MIGRATIONS)
print(*sorted(name for name in ("alembic", "opentelemetry") if name in sys.modules))
"""


def test_a_store_that_is_up_to_date_is_served_without_loading_what_only_migrations_need(tmp_path: Path) -> None:
    command = [sys.executable, "-c", START, f"sqlite:///{tmp_path / 'store.db'}"]
    first, again = (subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in "12")
    assert first == "alembic"
    assert again == ""
