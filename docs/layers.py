"""Draw the layers of `docs/architecture.md` from the import contracts of pyproject.toml: `layers.py [--check]`."""

import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- layers -->", "<!-- end of layers -->"


def drawing() -> str:
    """Every layers contract as a picture: what stands above may import what stands below, never the other way."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return "\n\n".join(_drawn(contract) for contract in settings["contracts"] if contract["type"] == "layers")


def _drawn(contract: dict[str, Any]) -> str:
    rows = [row.replace("(", "").replace(")", "?") for row in contract["layers"]]
    width = max(map(len, rows))
    where = "\n".join(f"- `{name}`" for name in contract["containers"])
    box = "\n".join(f"│ {row:^{width}} │" for row in rows)
    line = "─" * (width + 2)
    return f"**{contract['name']}**\n\n{where}\n\n```\n┌{line}┐\n{box}\n└{line}┘\n```"


def page() -> str:
    """The page with the drawing of today."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{drawing()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Write the page, or say whether it is as the contracts are."""
    if "--check" in arguments:
        return 0 if PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
