"""Write the API reference from the protos and their comments, one Markdown page a package: `reference.py <folder>`."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from openapi import descriptors

from buf.validate import validate_pb2  # type: ignore[attr-defined] # the package, not the folder beside this file
from pointsman.api.common.v1 import common_pb2
from pointsman.services.gateway.openapi.comments import Comments

PACKAGE = "pointsman.api."
TYPES = {getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower() for name in dir(FieldDescriptor) if name.startswith("TYPE_")}  # fmt: skip


class Reference:
    """The contract as pages: services with their RPCs, messages with their fields and limits, enums with their values."""

    def __init__(self, files: FileDescriptorSet) -> None:
        self._comments = Comments(files)
        names = sorted(file.name for file in files.file if file.package.startswith(PACKAGE))
        self._files = [_generated(name) for name in names]

    def pages(self) -> dict[str, str]:
        """The text of each page by its context."""
        contexts = sorted({_context(file.package) for file in self._files})
        return {context: "\n".join(self._page(context)) + "\n" for context in contexts}

    def _page(self, context: str) -> Iterator[str]:
        files = [file for file in self._files if _context(file.package) == context]
        yield f"# {files[0].package}\n"
        yield "Generated from " + ", ".join(f"`protos/{file.name}`" for file in files) + ".\n"
        for file in files:
            for service in file.services_by_name.values():
                yield from self._service(service)
        for file in files:
            for message in file.message_types_by_name.values():
                yield from self._message(message)
            for enum in file.enum_types_by_name.values():
                yield from self._enum(enum)

    def _service(self, service: ServiceDescriptor) -> Iterator[str]:
        yield f"## {service.name}\n\n{self._comments.of(service.full_name)}\n"
        for method in service.methods:
            yield f"### {service.name}.{method.name}\n\n{self._comments.of(method.full_name)}\n"
            yield f"- takes {self._streamed(method.client_streaming, method.input_type)}"
            yield f"- returns {self._streamed(method.server_streaming, method.output_type)}"
            yield f"- least role: {self._least_role(method)}\n"

    def _streamed(self, streams: bool, message: Descriptor) -> str:
        return ("a stream of " if streams else "") + _link(message)

    def _least_role(self, method: MethodDescriptor) -> str:
        return f"`{common_pb2.Role.Name(method.GetOptions().Extensions[common_pb2.role])}`"

    def _message(self, message: Descriptor) -> Iterator[str]:
        yield f"## {message.name} {{ #{_anchor(message)} }}\n\n{self._comments.of(message.full_name)}\n"
        for check in message.GetOptions().Extensions[validate_pb2.message].cel:
            yield f"Rule: {check.message or check.expression}\n"
        if message.fields:
            yield "| field | type | what it is | limits |\n|---|---|---|---|"
            yield from (self._field(field) for field in message.fields)
            yield ""
        for nested in message.nested_types:
            if not nested.GetOptions().map_entry:
                yield from self._message(nested)
        for enum in message.enum_types:
            yield from self._enum(enum)

    def _field(self, field: FieldDescriptor) -> str:
        rules = text_format.MessageToString(field.GetOptions().Extensions[validate_pb2.field], as_one_line=True)
        limits = f"`{rules}`" if rules else ""
        cells = (f"`{field.name}` = {field.number}", _type(field), self._comments.of(field.full_name), limits)
        return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"

    def _enum(self, enum: EnumDescriptor) -> Iterator[str]:
        yield f"## {enum.name} {{ #{_anchor(enum)} }}\n\n{self._comments.of(enum.full_name)}\n"
        yield "| value | number | what it is |\n|---|---|---|"
        for value in enum.values:
            text = self._comments.of(f"{enum.full_name}.{value.name}")
            yield f"| `{value.name}` | {value.number} | {' '.join(text.split())} |"
        yield ""


def _generated(proto: str) -> Any:
    return importlib.import_module(proto.removesuffix(".proto").replace("/", ".") + "_pb2").DESCRIPTOR


def _context(package: str) -> str:
    return package.removeprefix(PACKAGE).partition(".")[0]


def _anchor(described: Any) -> str:
    return str(described.full_name).removeprefix(PACKAGE).lower().replace(".", "-")


def _link(described: Any) -> str:
    if not described.full_name.startswith(PACKAGE):
        return f"`{described.full_name}`"
    return f"[{described.name}]({_context(described.full_name)}.md#{_anchor(described)})"


def _type(field: FieldDescriptor) -> str:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        return f"map of {_type(key)} to {_type(value)}"
    inner = field.message_type or field.enum_type
    name = _link(inner) if inner is not None else TYPES[field.type]
    return f"list of {name}" if field.is_repeated else name


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for context, text in Reference(descriptors()).pages().items():
        (folder / f"{context}.md").write_text(text)
