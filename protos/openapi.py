"""Generate the gateway's OpenAPI document from the protos and their comments."""

import json
import sys
import tempfile
from pathlib import Path

from generate import PROTOS, WELL_KNOWN
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

from pointsman.services.gateway.openapi import DOCUMENT, document


def descriptors() -> FileDescriptorSet:
    """Every proto with the comments that generated code leaves out."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        options = [f"-I{PROTOS}", f"-I{WELL_KNOWN}", "--include_source_info", f"--descriptor_set_out={target}"]
        if protoc.main(["protoc", *options, *sources]) != 0:
            raise SystemExit("protoc failed")
        return FileDescriptorSet.FromString(target.read_bytes())


def text() -> str:
    """The document as it is committed."""
    return json.dumps(document(descriptors()), indent=1, ensure_ascii=False, sort_keys=False) + "\n"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        DOCUMENT.write_text(text())
    elif text() != DOCUMENT.read_text():
        sys.exit("the OpenAPI document is not what the protos say; run `make proto`")
