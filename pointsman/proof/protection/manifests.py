"""Splits a manifest by key: test, runner and script keys from the base, everything else from the delivery."""

import configparser
import io
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pointsman.proof.protection import pom
from pointsman.proof.protection.rules import ManifestFormat, ManifestRule
from pointsman.proof.protection.toml_writer import write_toml

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SplitManifest:
    """A manifest with the base's keys laid in; what differed is named."""

    content: bytes
    protected_keys: tuple[str, ...] = ()
    """Keys that come from the base and that the author had changed."""
    dependency_keys: tuple[str, ...] = ()
    """Keys of dependencies that the author changed."""
    other_changed: bool = False
    """Whether keys changed that come from the delivery."""


def split_manifest(base: bytes | None, delivered: bytes | None, rule: ManifestRule) -> SplitManifest:
    """The manifest that a delivery is proven with; a manifest that cannot be read is the base's as a whole."""
    if delivered is None:
        return SplitManifest(base or b"", ("the file was deleted",))
    try:
        if rule.format is ManifestFormat.XML:
            return SplitManifest(*pom.split(base, delivered, rule.base, rule.dependencies))
        return _split(base, delivered, rule)
    except (ValueError, configparser.Error) as error:
        return SplitManifest(base or b"", (f"the file cannot be read: {error}",))


def _split(base: bytes | None, delivered: bytes | None, rule: ManifestRule) -> SplitManifest:
    read, write = _FORMATS[rule.format]
    before = read((base or b"").decode()) if base is not None else {}
    after = read((delivered or b"").decode())
    merged = deepcopy(after)
    for key in rule.base:
        _lay(before, merged, _path(key, rule.format))
    protected = tuple(key for key in rule.base if _differ(before, after, _path(key, rule.format)))
    dependencies = tuple(key for key in rule.dependencies if _differ(before, after, _path(key, rule.format)))
    content = (delivered or b"") if not protected else write(merged).encode()
    return SplitManifest(content, protected, dependencies, merged != before)


def _path(key: str, form: ManifestFormat) -> tuple[str, ...]:
    return (key,) if form is ManifestFormat.INI else tuple(key.split("."))


def _names(pattern: str, *tables: Mapping[str, Any]) -> list[str]:
    return sorted({name for table in tables for name in table if fnmatchcase(name, pattern)})


def _table(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _lay(before: Document, merged: Document, path: Sequence[str]) -> None:
    """Puts the base's value of a key in place of the delivery's."""
    for name in _names(path[0], before, merged):
        if len(path) > 1:
            _lay_below(before, merged, name, path[1:])
        elif name in before:
            merged[name] = deepcopy(before[name])
        else:
            merged.pop(name, None)


def _lay_below(before: Document, merged: Document, name: str, path: Sequence[str]) -> None:
    inner = _table(before.get(name))
    if not isinstance(merged.get(name), dict):
        if not inner:
            return
        merged[name] = {}
    _lay(inner, merged[name], path)


def _differ(before: Document, after: Document, path: Sequence[str]) -> bool:
    for name in _names(path[0], before, after):
        if len(path) == 1 and before.get(name) != after.get(name):
            return True
        if len(path) > 1 and _differ(_table(before.get(name)), _table(after.get(name)), path[1:]):
            return True
    return False


def _read_ini(text: str) -> Document:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=", ":"))
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _write_ini(document: Document) -> str:
    parser = configparser.RawConfigParser(allow_no_value=True)
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    parser.read_dict(document)
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def _read_json(text: str) -> Document:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - one kind of error for every unreadable manifest
    return document


def _write_json(document: Document) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


_FORMATS: Mapping[ManifestFormat, tuple[Callable[[str], Document], Callable[[Document], str]]] = {
    ManifestFormat.TOML: (tomllib.loads, write_toml),
    ManifestFormat.INI: (_read_ini, _write_ini),
    ManifestFormat.JSON: (_read_json, _write_json),
}
