"""Engines of tests share what they know of a database and what they have compiled: a new store else begins with nothing."""

from typing import Any

from sqlalchemy import Engine
from sqlalchemy import create_engine as new_engine

from pointsman.services.chassis.storage import database


def share_compiled_statements() -> None:
    """From now on, compile a statement once in this process for each kind of engine."""
    known: dict[tuple[str, str], tuple[Engine, dict[Any, Any]]] = {}

    def create_engine(url: Any, **options: Any) -> Engine:
        """An engine that speaks as the first of its kind does, once that one has been connected."""
        key = (url.get_backend_name(), str(options.get("isolation_level")))
        first, compiled = known.get(key, (None, {}))
        engine = new_engine(url, **options, execution_options={"compiled_cache": compiled})
        if first is None or first.dialect.server_version_info is None:
            known[key] = (engine, compiled)
        else:
            engine.dialect = first.dialect
        return engine

    database.create_engine = create_engine  # type: ignore[attr-defined]
