"""Prints the tables of the rules into documents: `python -m pointsman.services.router.rules docs/concepts/router.md …`."""

import sys
from pathlib import Path

from pointsman.services.router.domain.rule_docs import with_tables
from pointsman.services.router.rules import standard_rule_book


def main(files: list[str]) -> None:
    """Prints the tables of each file anew."""
    for name in files:
        file = Path(name)
        text = file.read_text(encoding="utf-8")
        file.write_text(with_tables(text, standard_rule_book().document), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
