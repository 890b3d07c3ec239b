"""Requests made from the descriptors: a valid one of each RPC, and everything that can be wrong with each field."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from random import Random  # noqa: TID251 - a campaign can be repeated from its seed
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from buf.validate import validate_pb2

MAX_DEPTH = 4
FIT_BYTES = 1_500_000
VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)
TEXTS: tuple[bytes, ...] = (
    b"", b"\0", b"a\0b", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", "\u202etxt.exe".encode(),
    ("e" + "\u0301" * 2000).encode(), "\ufeff".encode(), "\u2028\u2029".encode(), "👩‍👩‍👧‍👦".encode() * 20,
    b"../../etc/passwd", b"'; DROP TABLE entities; --", b"%s%n{0}", b"<!-- PIPELINE_ROUTE: {", b"${jndi:ldap}",
    "ﬀ".encode() * 100, "\U000e0001".encode(), b"{" * 300, b"[" * 5000, b"\r\nx: y", "ſK".encode(), b" ", b"-1",
)  # fmt: skip
NUMBERS = (
    0,
    1,
    -1,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    999_999_999,
    10**9,
    10**12,
    253_402_300_799,
    315_576_000_000,
)
REALS = (float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 5e-324, -1.0, 2.0)
Path = tuple[FieldDescriptor, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """Ids of things that exist, so that requests get past NOT_FOUND."""

    ids: Mapping[str, str]

    def value(self, field: FieldDescriptor) -> str:
        """A value that a string field takes."""
        return self.ids.get(field.name, "")


def valid_request(descriptor: Descriptor, known: Known, request_id: str) -> bytes:
    """A request with every field filled, as its constraints want it."""
    message = GetMessageClass(descriptor)()
    _fill(message, known, MAX_DEPTH)
    if "request_id" in descriptor.fields_by_name:
        message.request_id = request_id  # type: ignore[attr-defined]
    if "wait" in descriptor.fields_by_name:
        message.wait.Clear()  # type: ignore[attr-defined]
    data: bytes = message.SerializeToString()
    return data


def _fill(message: Any, known: Known, depth: int) -> None:
    chosen: set[str] = set()
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        if oneof is not None and oneof.name in chosen and len(oneof.fields) > 1:
            continue
        if oneof is not None:
            chosen.add(oneof.name)
        if _wants_a_pair(field):
            getattr(message, field.name)["a"] = "a"
        elif not _is_map(field) and (field.message_type is None or depth > 0):
            _fill_field(message, field, known, depth)


def _wants_a_pair(field: FieldDescriptor) -> bool:
    """Whether a map must not be empty; those that must not are of texts."""
    rules = _rules(field, "map") if _is_map(field) else None
    return rules is not None and int(rules.min_pairs) > 0


def _fill_field(message: Any, field: FieldDescriptor, known: Known, depth: int) -> None:
    if field.message_type is not None:
        if field.message_type.full_name.startswith("google.protobuf."):
            return
        inner = getattr(message, field.name)
        _fill(inner.add() if field.is_repeated else inner, known, depth - 1)
        return
    value = _plain(field, known)
    if field.is_repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


def _plain(field: FieldDescriptor, known: Known) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values[min(1, len(field.enum_type.values) - 1)].number
    if field.type == FieldDescriptor.TYPE_STRING:
        rules = _rules(field, "string")
        least = max(1, int(rules.min_len), int(rules.len)) if rules is not None else 1
        return known.value(field) or "a" * least
    if field.type == FieldDescriptor.TYPE_BYTES:
        return b"a"
    if field.type == FieldDescriptor.TYPE_BOOL:
        return False
    return 1


def _rules(field: FieldDescriptor, kind: str) -> Any:
    """The constraints of a field, or of its elements."""
    rules: Any = field.GetOptions().Extensions[validate_pb2.field]
    if field.is_repeated and rules.HasField("repeated"):
        rules = rules.repeated.items
    return getattr(rules, kind) if rules.HasField(kind) else None


@cache
def paths(descriptor: Descriptor) -> tuple[Path, ...]:
    """Every field of a message and of the messages in it."""
    return tuple(_paths(descriptor, (), MAX_DEPTH))


def _paths(descriptor: Descriptor, above: Path, depth: int) -> Iterator[Path]:
    for field in descriptor.fields:
        path = (*above, field)
        yield path
        if field.message_type is not None and depth > 1:
            yield from _paths(field.message_type, path, depth - 1)


def traps(path: Path, random: Random, most: int) -> list[bytes]:
    """Some of what can be wrong with one field, each as bytes that go behind a valid request."""
    found = _wrong(path[-1])
    chosen = random.sample(found, min(len(found), most))
    return [wrapped(path[:-1], raw) for raw in chosen]


@lru_cache(128)
def _wrong(field: FieldDescriptor) -> list[bytes]:
    """Everything; for a field with huge texts many megabytes, which are not made anew for each request."""
    return [*_wrong_types(field), *_wrong_values(field, Random(field.full_name))]


def wrapped(above: Sequence[FieldDescriptor], raw: bytes) -> bytes:
    """Bytes of a field inside the messages that it belongs to; readers merge them into what is there."""
    for field in reversed(above):
        raw = _tag(field.number, BYTES) + _varint(len(raw)) + raw
    return raw


def _wrong_types(field: FieldDescriptor) -> Iterator[bytes]:
    number = field.number
    yield _tag(number, VARINT) + b"\x01"
    yield _tag(number, VARINT) + b"\xff" * 11
    yield _tag(number, FIXED64) + b"\0" * 8
    yield _tag(number, FIXED32) + b"\0" * 4
    yield _tag(number, BYTES) + b"\x05a"
    yield _tag(number, BYTES) + _varint(2**40)
    yield _tag(number, BYTES) + b"\x03\x0a\xff\x01"
    yield _tag(number, GROUP) * 150
    yield _tag(number, GROUP) + _tag(number, END_GROUP)
    yield _tag(number, END_GROUP)
    yield _tag(number, 6)
    yield _tag(number, 7)


def _wrong_values(field: FieldDescriptor, random: Random) -> Iterator[bytes]:
    if field.message_type is not None:
        yield from _wrong_messages(field)
    elif field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        for text in (*TEXTS, *_lengths(field)):
            yield _tag(field.number, BYTES) + _varint(len(text)) + text
    elif field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        for real in REALS:
            yield _tag(field.number, FIXED64) + struct.pack("<d", real)
    else:
        for number in (*NUMBERS, *_edges(field), random.getrandbits(63)):
            yield _tag(field.number, VARINT) + _varint(number % 2**64)
    if field.is_repeated:
        yield from _many(field)


def _wrong_messages(field: FieldDescriptor) -> Iterator[bytes]:
    deep = b""
    for _ in range(150):
        deep = _tag(field.number, BYTES) + _varint(len(deep)) + deep
    yield deep
    unknown = (_tag(19_999, BYTES) + b"\x01a") * 2000
    yield _tag(field.number, BYTES) + _varint(len(unknown)) + unknown
    yield _tag(field.number, BYTES) + b"\0"


def _lengths(field: FieldDescriptor) -> Iterator[bytes]:
    """Texts at the limits of a field and one past them; huge where it has none."""
    rules = _rules(field, "string" if field.type == FieldDescriptor.TYPE_STRING else "bytes")
    limits = {int(getattr(rules, name, 0)) for name in ("min_len", "max_len", "len", "min_bytes", "max_bytes")}
    for limit in sorted(limits - {0}) if rules is not None else (FIT_BYTES,):
        for length in (limit - 1, limit, limit + 1):
            if length < FIT_BYTES + 2:
                yield b"a" * length
                yield ("é" * length).encode()[: FIT_BYTES // 2 * 2]


def _edges(field: FieldDescriptor) -> Iterator[int]:
    kinds = {v: k.removeprefix("TYPE_").lower() for k, v in vars(FieldDescriptor).items() if k.startswith("TYPE_")}
    rules = _rules(field, kinds[field.type]) if kinds[field.type] in ("int32", "int64", "uint32", "uint64") else None
    for name in ("lt", "lte", "gt", "gte"):
        if rules is not None and rules.HasField(name):
            limit = int(getattr(rules, name))
            yield from (limit - 1, limit, limit + 1)
    if field.enum_type is not None:
        yield max(value.number for value in field.enum_type.values) + 1


def _many(field: FieldDescriptor) -> Iterator[bytes]:
    """As many elements as are allowed, and one more."""
    limit = int(field.GetOptions().Extensions[validate_pb2.field].repeated.max_items) or 20_000
    if field.message_type is not None or field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        one = _tag(field.number, BYTES) + (b"\0" if field.message_type is not None else b"\x01a")
    else:
        one = _tag(field.number, VARINT) + b"\x01"
    for count in (limit, limit + 1):
        if count * len(one) < FIT_BYTES:
            yield one * count


def noise(data: bytes, random: Random) -> bytes:
    """A request that something on the way has spoiled."""
    kind = random.randrange(4)
    if kind == 0 or not data:
        return random.randbytes(random.randrange(200))
    place = random.randrange(len(data))
    if kind == 1:
        return data[:place]
    if kind == 2:
        return data[:place] + random.randbytes(1) + data[place + 1 :]
    return data[:place] + random.randbytes(random.randrange(1, 9)) + data[place:]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
