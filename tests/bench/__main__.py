"""`python -m tests.bench [NAME]…`: run the benchmarks one after the other; JSON lines on standard output."""

import importlib
import sys

NAMES = (
    "public",
    "startup",
    "chassis",
    "router",
    "workflow",
    "pipeline",
    "orchestrator",
    "telemetry",
    "gateway",
    "sizing",
    "disk",
    "landing",
)


def main(names: list[str]) -> None:
    """Run the named ones, or all."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    for name in names or NAMES:
        print(f"# {name}", file=sys.stderr, flush=True)
        importlib.import_module(f"tests.bench.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
