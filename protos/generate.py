"""Generate the Python code of every proto into a tree (default: this repository), with nothing rewritten."""

import sys
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
PLUGINS = Path(sys.executable).parent
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"


def generate(target: Path) -> int:
    """Run protoc over all protos, and lay down the packages' __init__ files."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    code: int = protoc.main(
        [
            "protoc",
            f"-I{PROTOS}",
            f"-I{WELL_KNOWN}",
            f"--plugin=protoc-gen-mypy={PLUGINS}/protoc-gen-mypy",
            f"--plugin=protoc-gen-mypy_grpc={PLUGINS}/protoc-gen-mypy_grpc",
            f"--python_out={target}",
            f"--grpc_python_out={target}",
            f"--mypy_out=quiet:{target}",
            f"--mypy_grpc_out=quiet,only_async:{target}",
            *sources,
        ]
    )
    for source in sources:
        folder = (target / source).parent
        while folder.is_relative_to(target / "pointsman" / "api"):
            (folder / "__init__.py").touch()
            folder = folder.parent
    return code


if __name__ == "__main__":
    sys.exit(generate(Path(sys.argv[1]) if len(sys.argv) > 1 else PROTOS.parent))
