"""Writes values as TOML; the standard library only reads it."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time


def write_toml(document: Mapping[str, object]) -> str:
    """The document as text with the same values; comments and the order of tables are lost."""
    return "\n".join(_table(document, ())) + "\n"


def _table(table: Mapping[str, object], path: Sequence[str]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{'.'.join(map(_key, path))}]"] if path and (plain or not table) else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _table(value, (*path, key))
    return lines


def _key(key: str) -> str:
    return _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return repr(value)
