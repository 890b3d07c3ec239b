"""The documentation as a site: `pages.py check` tries every link, `pages.py stage <folder>` writes the pages for MkDocs.

Both read the Markdown files of the repository and no network. MkDocs knows only one folder, so pages from elsewhere
are staged beside those of `docs/`, links between pages follow them, and a link to any other file becomes its path.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from wrap import FENCE, MAX_LINE

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "tests/robustness/README.md": "robustness/index.md",
    "tests/robustness/ABUSE.md": "robustness/abuse.md",
}
FOLDERS = {"docs/adr": "adr/index.md", "docs/concepts": "concepts.md"}
"""Where links to a folder lead."""
MODULES = {
    "client": (
        "pointsman.client",
        ("Client", "connect"),
        ("runs", "agents", "artifacts", "router", "workflow", "pipeline", "calls", "errors"),
    ),
    "worker": ("pointsman.worker", (), ("sdk", "results", "handoff", "evidence", "command", "git")),
}
"""The Python reference: a package, what it defines itself, and the modules that users import from."""
LINK = re.compile(r"(!?)\[((?:[^\]\\]|\\.)*)\]\(([^)\s]+)\)")
SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page, and whether it is code."""

    number: int
    text: str
    is_code: bool


def pages() -> dict[str, str]:
    """Every page in the repository, and its place in the site."""
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    return {name: name.removeprefix("docs/") for name in sorted(ours)} | ELSEWHERE


def lines_of(name: str) -> Iterator[Line]:
    """The lines of a page."""
    in_fence = False
    for number, text in enumerate((ROOT / name).read_text().splitlines(), 1):
        fence = FENCE.match(text) is not None
        yield Line(number, text, in_fence or fence)
        in_fence = in_fence != fence


def with_links(text: str, replace: Callable[[re.Match[str]], str]) -> str:
    """A line with each link replaced; what stands in backticks is left as it is."""
    parts = re.split(r"(`[^`]+`(?!\]))", text)
    return "".join(part if index % 2 else LINK.sub(replace, part) for index, part in enumerate(parts))


def target_of(name: str, link: str) -> tuple[str, str] | None:
    """The file of the repository and the heading that a link of a page means; None for other hosts."""
    if SCHEME.match(link):
        return None
    path, _, heading = link.partition("#")
    if not path:
        return name, heading
    return os.path.normpath(PurePosixPath(name).parent / path).replace(os.sep, "/"), heading


def headings_of(name: str) -> set[str]:
    """The anchors of a page, as GitHub and the site make them."""
    titles = (line.text.lstrip("#") for line in lines_of(name) if not line.is_code and line.text.startswith("#"))
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def problems() -> list[str]:
    """Links that lead nowhere, and lines that are too long."""
    found: list[str] = []
    for name in pages():
        for line in lines_of(name):
            if line.is_code:
                continue
            if len(line.text) > MAX_LINE and not line.text.lstrip().startswith("|"):
                found.append(f"{name}:{line.number}: {len(line.text)} characters; `docs/wrap.py` wraps at {MAX_LINE}")
            with_links(line.text, lambda link, at=f"{name}:{line.number}", name=name: _tried(link, name, at, found))  # type: ignore[misc]
    return found


def _tried(link: re.Match[str], name: str, at: str, found: list[str]) -> str:
    target = target_of(name, link[3])
    if target is not None:
        file, heading = target
        if not (ROOT / file).exists():
            found.append(f"{at}: {link[3]}: there is no {file}")
        elif heading and file.endswith(".md") and heading not in headings_of(file):
            found.append(f"{at}: {link[3]}: {file} has no such heading")
    return link[0]


def stage(folder: Path) -> None:
    """Write every page, with its links as they are in the site."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "images", folder / "images")
    for name, place in pages().items():
        lines = [line.text if line.is_code else with_links(line.text, _moved(name, place)) for line in lines_of(name)]
        _write(folder / place, lines)
    _write(folder / "adr" / "index.md", ["# Decisions", "", *_decisions()])
    for page, (package, own, modules) in MODULES.items():
        _write(folder / "python" / f"{page}.md", [f"# {package}", "", *_python(package, own, modules)])


def _moved(name: str, place: str) -> Callable[[re.Match[str]], str]:
    """How a link of a page is written in the site."""

    def moved(link: re.Match[str]) -> str:
        target = target_of(name, link[3])
        if target is None or target[0] == name:
            return link[0]
        file, heading = target
        staged = pages().get(file) or FOLDERS.get(file) or (file.removeprefix("docs/") if "images/" in file else "")
        if not staged:
            return f"{link[2]} (`{file}`)" if link[2].strip("`") != file else f"`{file}`"
        relative = os.path.relpath(staged, PurePosixPath(place).parent).replace(os.sep, "/")
        return f"{link[1]}[{link[2]}]({relative}{'#' + heading if heading else ''})"

    return moved


def _decisions() -> Iterator[str]:
    for path in sorted((ROOT / "docs" / "adr").glob("*.md")):
        title = path.read_text().partition("\n")[0].removeprefix("# ")
        yield f"- [{title}]({path.name})"


def _python(package: str, own: tuple[str, ...], modules: tuple[str, ...]) -> Iterator[str]:
    yield f"::: {package}\n    options:\n      members: [{', '.join(own)}]\n"
    for module in modules:
        yield f"## {package}.{module}\n\n::: {package}.{module}\n    options:\n      heading_level: 3\n"


def _write(file: Path, lines: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "check":
        sys.exit("\n".join(problems()) or None)
    stage(Path(sys.argv[2]))
