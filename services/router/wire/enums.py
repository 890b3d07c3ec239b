"""Enums on the wire: the same words as in the domain, with the prefix that protobuf wants."""

from enum import StrEnum
from typing import Any, TypeVar

Member = TypeVar("Member", bound=StrEnum)


def to_wire(wire_enum: Any, prefix: str, value: StrEnum | None, otherwise: str = "UNSPECIFIED") -> Any:
    """The wire's number for a domain value, or for none."""
    return wire_enum.Value(f"{prefix}_{otherwise if value is None else value.name}")


def from_wire(members: type[Member], wire_enum: Any, prefix: str, number: int) -> Member | None:
    """The domain value for the wire's number; none for what is unspecified."""
    name = wire_enum.Name(number).removeprefix(f"{prefix}_")
    return None if name == "UNSPECIFIED" else members[name]
