"""Cuts the endpoints that are used out of GitHub's REST description: `extract.py api.github.com.json > rest.json`.

The description is published as `generated/api.github.com.json` of the npm package @octokit/openapi (MIT).
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = "/repos/{owner}/{repo}"
USED = (
    ("get", "/pulls"), ("post", "/pulls"), ("get", "/pulls/{pull_number}"), ("patch", "/pulls/{pull_number}"),
    ("get", "/pulls/{pull_number}/reviews"), ("get", "/commits/{ref}/check-runs"), ("get", "/commits/{ref}/status"),
    ("get", "/actions/jobs/{job_id}/logs"), ("get", "/issues/{issue_number}/comments"),
    ("post", "/issues/{issue_number}/comments"),
)  # fmt: skip
WORDS = ("description", "example", "examples", "title", "externalDocs", "x-github", "summary", "tags", "deprecated")
REF = "#/components/"


def main() -> None:
    whole = json.loads(Path(sys.argv[1]).read_text())
    paths: dict[str, Any] = {}
    for method, path in USED:
        operation = whole["paths"][f"{REPOSITORY}{path}"][method]
        paths.setdefault(f"{REPOSITORY}{path}", {})[method] = _operation(operation)
    parts: dict[str, Any] = {}
    wanted = list(_references(paths))
    while wanted:
        name = wanted.pop()
        if name not in parts:
            kind, _, key = name.removeprefix(REF).partition("/")
            parts[name] = _plain(whole["components"][kind][key], in_properties=False)
            wanted += _references(parts[name])
    about = f"GitHub's REST description {whole['info']['version']}, cut by extract.py; MIT, GitHub Inc."
    cut = {"about": about, "paths": paths, "components": _nested(parts)}
    print(json.dumps(cut, indent=None, separators=(",", ":"), sort_keys=True))


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    """What may be asked, and the answers that are no errors."""
    answers = {status: answer for status, answer in operation["responses"].items() if status < "400"}
    for answer in answers.values():
        answer.pop("headers", None)
    kept = {key: operation[key] for key in ("parameters", "requestBody") if key in operation}
    plain: dict[str, Any] = _plain({**kept, "responses": answers}, in_properties=False)
    return plain


def _plain(value: Any, *, in_properties: bool) -> Any:
    """A part without words for people; a property may be called `title`."""
    if isinstance(value, list):
        return [_plain(item, in_properties=False) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _plain(item, in_properties=key == "properties" and not in_properties)
        for key, item in value.items()
        if in_properties or key not in WORDS
    }


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from _references(item)


def _nested(parts: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, part in parts.items():
        kind, _, key = name.removeprefix(REF).partition("/")
        nested.setdefault(kind, {})[key] = part
    return nested


main()
