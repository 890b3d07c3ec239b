"""Converts enums: protobuf members are the domain's names with a prefix."""

from enum import StrEnum
from typing import Any, TypeVar

Member = TypeVar("Member", bound=StrEnum)


def to_wire(wire_enum: Any, prefix: str, value: StrEnum | None, otherwise: str = "UNSPECIFIED") -> Any:
    """The protobuf number of a domain value; that of `otherwise` for None."""
    return wire_enum.Value(f"{prefix}_{otherwise if value is None else value.name}")


def from_wire(members: type[Member], wire_enum: Any, prefix: str, number: int) -> Member | None:
    """The domain value of a protobuf number; None for UNSPECIFIED."""
    name = wire_enum.Name(number).removeprefix(f"{prefix}_")
    return None if name == "UNSPECIFIED" else members[name]
