"""The errors of the database drivers, by the names of the DB-API.

Only a store on PostgreSQL imports psycopg (0.2 s); while nobody has, none of its errors can be raised.
"""

import sqlite3
import sys
from typing import Any

ErrorTypes = tuple[type[Exception], ...]


def driver_errors() -> ErrorTypes:
    """Every error of a driver."""
    return tuple(driver.Error for driver in _drivers())


def integrity_errors() -> ErrorTypes:
    """A row with this key exists already."""
    return tuple(driver.IntegrityError for driver in _drivers())


def conflict_errors() -> ErrorTypes:
    """PostgreSQL has ended a transaction in favour of another one (SQLSTATE 40001 or 40P01); the same may succeed now."""
    psycopg = sys.modules.get("psycopg")
    return (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected) if psycopg is not None else ()


def outage_errors() -> ErrorTypes:
    """PostgreSQL cannot be reached, or is too busy."""
    return tuple(error for driver in _drivers()[1:] for error in (driver.OperationalError, driver.InterfaceError))


def statement_errors() -> ErrorTypes:
    """PostgreSQL refuses a statement; at the start of a store, because the database does not exist."""
    return tuple(driver.ProgrammingError for driver in _drivers()[1:])


def _drivers() -> tuple[Any, ...]:
    """The drivers of this process: SQLite's, then PostgreSQL's if it is imported."""
    psycopg = sys.modules.get("psycopg")
    return (sqlite3, psycopg) if psycopg is not None else (sqlite3,)
