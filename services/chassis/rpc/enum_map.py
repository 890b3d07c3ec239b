"""Enums of a domain on the wire: protobuf members are the domain's names with a prefix."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Generic, TypeVar

Member = TypeVar("Member", bound=StrEnum)


class EnumMap(Generic[Member]):
    """Maps one enum of the domain to its protobuf enum and back, by name."""

    def __init__(self, wire: Any, domain: type[Member], unspecified: Member | None = None) -> None:
        """`unspecified` is the member that has no name on the wire."""
        prefix = wire.Name(0).removesuffix("UNSPECIFIED")
        self._to_wire = {member: wire.Value(f"{prefix}{member.name}") for member in domain if member is not unspecified}
        self._to_domain = {number: member for member, number in self._to_wire.items()}

    def to_wire(self, member: Member | None) -> Any:
        """The number of a member; that of UNSPECIFIED for None."""
        return 0 if member is None else self._to_wire.get(member, 0)

    def to_domain(self, number: int) -> Member | None:
        """The member of a number; None for UNSPECIFIED."""
        return self._to_domain.get(number)

    def required(self, number: int) -> Member:
        """The member of a number that cannot be UNSPECIFIED."""
        return self._to_domain[number]

    def or_default(self, number: int, default: Member) -> Member:
        """The member of a number; the default for UNSPECIFIED."""
        return self._to_domain.get(number, default)

    def all_to_domain(self, numbers: Iterable[int]) -> tuple[Member, ...]:
        """The members of numbers, without UNSPECIFIED."""
        return tuple(self._to_domain[number] for number in numbers if number in self._to_domain)
