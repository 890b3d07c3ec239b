"""The protos' comments, by the full name of what they stand before."""

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

CHILDREN: dict[str, tuple[tuple[int, str], ...]] = {
    "file": ((4, "message_type"), (5, "enum_type"), (6, "service")),
    "message_type": ((2, "field"), (3, "nested_type"), (4, "enum_type")),
    "nested_type": ((2, "field"), (3, "nested_type"), (4, "enum_type")),
    "enum_type": ((2, "value"),),
    "service": ((2, "method"),),
}


class Comments:
    """What every message, field, enum, value, service and method says about itself."""

    def __init__(self, files: FileDescriptorSet) -> None:
        self._texts: dict[str, str] = {}
        for file in files.file:
            places = {tuple(one.path): one.leading_comments for one in file.source_code_info.location}
            for name, path in _named(file):
                self._texts[name] = _clean(places.get(path, ""))

    def of(self, full_name: str) -> str:
        """The comment before something; empty where there is none."""
        return self._texts.get(full_name, "")


def _named(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from _children("file", file, file.package, ())


def _children(kind: str, holder: Any, prefix: str, path: Sequence[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for number, attribute in CHILDREN.get(kind, ()):
        for index, item in enumerate(getattr(holder, attribute)):
            name, place = f"{prefix}.{item.name}", (*path, number, index)
            yield name, place
            yield from _children(attribute, item, name, place)


def _clean(comment: str) -> str:
    return "\n".join(line.strip() for line in comment.strip().splitlines())
