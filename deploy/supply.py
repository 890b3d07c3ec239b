"""What is installed with Pointsman and what it is made with: `supply.py sbom` prints CycloneDX JSON, `supply.py licences` writes docs/licences.md."""

import hashlib
import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from others import contract, others

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {"run": "requirements.lock", "build": "requirements-build.lock", "develop": "requirements-dev.lock"}
PAGE = ROOT / "docs/licences.md"
ELSEWHERE = {
    "agent-client-protocol": "Apache-2.0",
    "colorama": "BSD-3-Clause",
    "httpx2-jsfetch": "BSD-3-Clause",
    "pywin32": "PSF-2.0",
    "tzdata": "Apache-2.0",
}
"""Packages that are locked for other systems than the one the page is made on, or name no licence in their metadata."""
SPDX = {
    "MIT License": "MIT", "Apache Software License": "Apache-2.0", "Apache": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0", "Apache 2.0": "Apache-2.0", "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "BSD 2-Clause License": "BSD-2-Clause", "3-Clause BSD License": "BSD-3-Clause", "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC", "ISC License": "ISC",
}  # fmt: skip
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ ;\\]+)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Package:
    """One locked package."""

    name: str
    version: str
    hashes: tuple[str, ...]


def locked(lock: str) -> Iterator[Package]:
    """The packages of a lock file."""
    for name, version, rest in _PINNED.findall((ROOT / lock).read_text()):
        yield Package(name, version, tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)))


def licence_of(name: str) -> str:
    """The SPDX expression of an installed package, from its own metadata."""
    try:
        about = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ELSEWHERE[name]
    named = [(about.get_all(key) or [""])[0].partition("\n")[0] for key in ("License-Expression", "License")]
    classified = [
        line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License")
    ]
    found = next((text for text in (*named, *classified) if text and text != "DFSG approved"), "")
    if not found and name in ELSEWHERE:
        return ELSEWHERE[name]
    if not found:
        raise SystemExit(f"{name} does not say its licence; look it up and add it to ELSEWHERE")
    return SPDX.get(found, found)


def page() -> str:
    """docs/licences.md: every locked package, what it is needed for, and its licence."""
    uses: dict[Package, str] = {}
    for use, lock in LOCKS.items():
        for package in locked(lock):
            uses.setdefault(package, use)
    rows = [
        f"| {package.name} | {package.version} | {use} | {licence_of(package.name)} |"
        for package, use in sorted(uses.items(), key=lambda item: item[0].name)
    ]
    head = (
        "# Licences of what we build on",
        "",
        "Made by `make sbom` from the lock files and the packages' own metadata. `run` is installed with Pointsman; `build` and",
        "`develop` are tools that it is made with and that are not shipped.",
        "",
        "| package | version | needed to | licence (SPDX) |",
        "|---|---|---|---|",
    )
    return "\n".join((*head, *rows, *_others())) + "\n"


def _others() -> Iterator[str]:
    yield from (
        "",
        "## Beside the Python packages",
        "",
        "From the clients' own lists (`go.mod`, `package-lock.json`, `pom.xml`), the files of others in this repository, and the",
        "images that the manifests and the compose file name. Base images bring Debian packages, whose licences are in their",
        "`/usr/share/doc`.",
        "",
        "| what | version | for | licence (SPDX) |",
        "|---|---|---|---|",
    )
    for other in others():
        yield f"| {other.name} | {other.version} | {other.use} | {other.licence} |"


def sbom() -> str:
    """What is installed with Pointsman, as CycloneDX 1.6; the same lock gives the same text."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = sorted(locked(LOCKS["run"]), key=lambda package: package.name)
    digest = hashlib.sha256((ROOT / LOCKS["run"]).read_bytes()).hexdigest()
    serial = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": [*(_component(package) for package in packages), _contract()],
    }
    return json.dumps(document, indent=2)


def _component(package: Package) -> dict[str, object]:
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{package.name}@{package.version}",
        "name": package.name,
        "version": package.version,
        "purl": f"pkg:pypi/{package.name}@{package.version}",
        "licenses": [{"expression": licence_of(package.name)}],
        "hashes": [{"alg": "SHA-256", "content": content} for content in package.hashes],
    }


def _contract() -> dict[str, object]:
    """The file of others that our own package holds code from."""
    file = contract()
    return {
        "type": "file",
        "bom-ref": file.name,
        "name": file.name,
        "version": file.version,
        "licenses": [{"expression": file.licence}],
        "hashes": [{"alg": "SHA-256", "content": file.version.removeprefix("sha256:")}],
    }


def main() -> None:
    """Print the one, or write the other."""
    if sys.argv[1:] == ["sbom"]:
        sys.stdout.write(sbom() + "\n")
    elif sys.argv[1:] == ["licences"]:
        PAGE.write_text(page())
    else:
        raise SystemExit("supply.py sbom | licences")


if __name__ == "__main__":
    main()
