"""JSON text ⇄ protobuf messages, by the proto JSON mapping with the protos' own field names."""

from pointsman.services.gateway.wire.body import read_json
from pointsman.services.gateway.wire.decode import decode
from pointsman.services.gateway.wire.encode import encode
from pointsman.services.gateway.wire.query import from_query

__all__ = ["decode", "encode", "from_query", "read_json"]
