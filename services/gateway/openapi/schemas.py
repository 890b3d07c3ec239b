"""Messages and enums as JSON schemas, with the limits that the protos declare."""

from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from buf.validate import validate_pb2
from pointsman.services.gateway.openapi.comments import Comments

PACKAGE = "pointsman.api."
WELL_KNOWN: dict[str, dict[str, Any]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?s$"},
}
SCALARS: dict[int, dict[str, Any]] = {
    FieldDescriptor.CPPTYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.CPPTYPE_UINT32: {"type": "integer"},
    FieldDescriptor.CPPTYPE_INT64: {"type": "string", "format": "int64", "pattern": "^-?[0-9]+$"},
    FieldDescriptor.CPPTYPE_UINT64: {"type": "string", "pattern": "^[0-9]+$"},
    FieldDescriptor.CPPTYPE_DOUBLE: {"type": "number"},
    FieldDescriptor.CPPTYPE_FLOAT: {"type": "number"},
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
}
STRING_LIMITS = {"min_len": "minLength", "max_len": "maxLength", "pattern": "pattern"}
NUMBER_LIMITS = {"gte": "minimum", "lte": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
LIST_LIMITS = {"min_items": "minItems", "max_items": "maxItems"}
MAP_LIMITS = {"min_pairs": "minProperties", "max_pairs": "maxProperties"}


class Schemas:
    """The schemas that the document's operations refer to, made as they are asked for."""

    def __init__(self, comments: Comments) -> None:
        self._comments = comments
        self.made: dict[str, dict[str, Any]] = {}

    def reference(self, descriptor: Any) -> dict[str, Any]:
        """A reference to a schema, which exists from then on."""
        name = descriptor.full_name.removeprefix(PACKAGE)
        if name not in self.made:
            self.made[name] = {}
            make = self._enum if isinstance(descriptor, EnumDescriptor) else self._message
            self.made[name] = make(descriptor)
        return {"$ref": f"#/components/schemas/{name}"}

    def field(self, field: Any) -> dict[str, Any]:
        """One field: its type, what it says about itself, its limits."""
        rules = field.GetOptions().Extensions[validate_pb2.field]
        schema = self._shape(field, rules)
        text = self._comments.of(field.full_name)
        return {**schema, "description": text} if text else schema

    def _message(self, descriptor: Any) -> dict[str, Any]:
        required = [
            field.name
            for field in descriptor.fields
            if field.GetOptions().Extensions[validate_pb2.field].required or _needs_text(field)
        ]
        schema: dict[str, Any] = {
            "type": "object",
            "description": self._comments.of(descriptor.full_name),
            "properties": {field.name: self.field(field) for field in descriptor.fields},
        }
        return {**schema, "required": required} if required else schema

    def _enum(self, descriptor: Any) -> dict[str, Any]:
        lines = [f"- `{one.name}`: {self._comments.of(_value_name(descriptor, one.name))}" for one in descriptor.values]
        text = self._comments.of(descriptor.full_name) + "\n\n" + "\n".join(lines)
        return {"type": "string", "enum": [one.name for one in descriptor.values], "description": text}

    def _shape(self, field: FieldDescriptor, rules: Any) -> dict[str, Any]:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            value = self._single(entry.fields_by_name["value"], rules.map.values)
            return {"type": "object", "additionalProperties": value, **_limits(rules.map, MAP_LIMITS)}
        if field.is_repeated:
            items = self._single(field, rules.repeated.items)
            return {"type": "array", "items": items, **_limits(rules.repeated, LIST_LIMITS)}
        return self._single(field, rules)

    def _single(self, field: FieldDescriptor, rules: Any) -> dict[str, Any]:
        inner = field.message_type or field.enum_type
        if inner is not None:
            return dict(WELL_KNOWN[inner.full_name]) if inner.full_name in WELL_KNOWN else self.reference(inner)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        kind = rules.WhichOneof("type")
        if kind == "string":
            return {**SCALARS[field.cpp_type], **_limits(rules.string, STRING_LIMITS)}
        if kind in ("int32", "double"):
            return {**SCALARS[field.cpp_type], **_limits(getattr(rules, kind), NUMBER_LIMITS)}
        return dict(SCALARS[field.cpp_type])


def _needs_text(field: FieldDescriptor) -> bool:
    rules = field.GetOptions().Extensions[validate_pb2.field]
    return not field.is_repeated and rules.WhichOneof("type") == "string" and rules.string.min_len > 0 and (
        field.containing_oneof is None
    )  # fmt: skip


def _limits(rules: Any, names: dict[str, str]) -> dict[str, Any]:
    return {names[field.name]: value for field, value in rules.ListFields() if field.name in names}


def _value_name(descriptor: EnumDescriptor, value: str) -> str:
    """The comment index names values below their enum."""
    return f"{descriptor.full_name}.{value}"
