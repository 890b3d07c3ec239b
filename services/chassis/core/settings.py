"""Reads settings classes from the environment: types and limits checked, unknown names refused, secrets masked."""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar, dataclass_transform, get_type_hints

import msgspec

from pointsman.services.chassis.core.errors import Violation, invalid_fields

SHARED_PREFIX = "POINTSMAN_"
PASSWORD_IN_URL = re.compile(r"(://[^:@/]*:).*@")
PASSWORD_PARAMETER = re.compile(r"([?&][^=&]*password=)[^&]*")
BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
"""Words for booleans besides those that msgspec reads (true, false, 1, 0)."""

SettingsClass = TypeVar("SettingsClass", bound="Settings")


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Settings:
    """Base of all settings classes: each annotated field is a setting, with its limits and a description.

    The constructor reads a field that is not given from the environment, else takes the default.
    """

    prefix: ClassVar[str]
    aliases: ClassVar[Mapping[str, tuple[str, ...]]]
    """Fields with several variables; the first that is set counts."""
    fields: ClassVar[tuple[str, ...]]
    """The fields, in order."""

    def __init_subclass__(cls, prefix: str = "", aliases: Mapping[str, tuple[str, ...]] | None = None) -> None:
        cls.prefix, cls.aliases, cls.fields = prefix, aliases or {}, tuple(cls.__annotations__)

    def __init__(self, **given: Any) -> None:
        unknown = sorted(set(given) - set(self.fields))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(unknown)}")
        found = {
            name: os.environ[variable] for name in self.fields if (variable := self._variable_in_use(name))
        } | given
        values = self._converted(found)
        for name in self.fields:
            object.__setattr__(self, name, values[name] if name in values else getattr(type(self), name))
        object.__setattr__(self, "_given", frozenset(found))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: settings are frozen")

    def is_given(self, name: str) -> bool:
        """Whether a field was set by the environment or the caller; else it has its default."""
        return name in self.__dict__["_given"]

    def replace(self: SettingsClass, **changes: Any) -> SettingsClass:
        """The same settings with some fields changed."""
        return type(self)(**{name: getattr(self, name) for name in self.fields} | changes)

    @classmethod
    def variables(cls, name: str) -> tuple[str, ...]:
        """The environment variables of a field."""
        return cls.aliases.get(name) or (cls.prefix + name.upper(),)

    @classmethod
    def _variable_in_use(cls, name: str) -> str:
        """The variable that sets a field; empty if none is set."""
        return next((variable for variable in cls.variables(name) if variable in os.environ), "")

    @classmethod
    def _converted(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        """The values with their types; refused with every field that does not fit."""
        types, values, violations = get_type_hints(cls, include_extras=True), {}, []
        for name, value in found.items():
            try:
                values[name] = _convert(value, types[name])
            except msgspec.ValidationError as error:
                violations.append(Violation(cls._variable_in_use(name) or cls.variables(name)[0], str(error)))
        if violations:
            raise invalid_fields(tuple(violations))
        return values


def load(
    settings_class: type[SettingsClass], environment: Mapping[str, str] = os.environ, /, **given: Any
) -> SettingsClass:
    """Read a settings class from the environment; a bad value or an unknown name says which and what is possible."""
    _refuse_unknown(settings_class, environment)
    return settings_class(**given)


def describe(settings: Settings) -> dict[str, str]:
    """Every setting with its value, passwords masked, for the start of the log."""
    return {name: _masked(str(getattr(settings, name))) for name in settings.fields}


def _convert(value: Any, wanted: Any) -> Any:
    """A value as the type of its field, with its limits; text is read as msgspec's lax mode does."""
    if isinstance(value, str):
        text = BOOLEANS.get(value.lower(), value) if _is_boolean(wanted) else value
        return msgspec.convert(text, wanted, strict=False, dec_hook=_read_path)
    return msgspec.convert(msgspec.to_builtins(value, enc_hook=str), wanted, strict=False, dec_hook=_read_path)


def _is_boolean(wanted: Any) -> bool:
    return getattr(wanted, "__origin__", wanted) is bool


def _read_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"settings of type {kind.__name__}")


def _refuse_unknown(settings_class: type[Settings], environment: Mapping[str, str]) -> None:
    """Below the shared prefix every service has its names: only what is nearly one of the shared ones is refused."""
    prefix, known = settings_class.prefix, {name.upper() for name in settings_class.fields}
    for variable in sorted(environment) if prefix else ():
        name = variable.removeprefix(prefix)
        if name == variable or name in known:
            continue
        close = difflib.get_close_matches(name, known, 1, 0.8 if prefix == SHARED_PREFIX else 0.6)
        if close:
            raise invalid_fields((Violation(variable, f"unknown setting; did you mean {prefix}{close[0]}?"),))
        if prefix != SHARED_PREFIX:
            names = ", ".join(prefix + name for name in sorted(known))
            raise invalid_fields((Violation(variable, f"unknown setting; known: {names}"),))


def _masked(value: str) -> str:
    return PASSWORD_PARAMETER.sub(r"\1***", PASSWORD_IN_URL.sub(r"\1***@", value))
