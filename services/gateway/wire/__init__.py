"""JSON text ⇄ protobuf messages, by the proto JSON mapping with the protos' own field names."""

from pointsman.services.gateway.wire.decode import decode
from pointsman.services.gateway.wire.encode import encode
from pointsman.services.gateway.wire.query import from_query
from pointsman.services.gateway.wire.strict import read_json

__all__ = ["decode", "encode", "from_query", "read_json"]
