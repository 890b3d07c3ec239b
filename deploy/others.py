"""What is not a Python package: the clients' dependencies, files of others that are kept here, and images that run beside ours."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
CLIENTS = ROOT / "clients"
POM = "{http://maven.apache.org/POM/4.0.0}"
LICENCES = {
    "golang.org/x/": "BSD-3-Clause",
    "google.golang.org/genproto/": "Apache-2.0",
    "google.golang.org/grpc": "Apache-2.0",
    "google.golang.org/protobuf": "BSD-3-Clause",
    "com.google.code.gson:": "Apache-2.0",
    "com.google.protobuf:": "BSD-3-Clause",
    "io.github.ascopes:": "Apache-2.0",
    "io.grpc:": "Apache-2.0",
    "org.apache.maven.plugins:": "Apache-2.0",
    "org.junit.jupiter:": "EPL-2.0",
    "envoyproxy/envoy": "Apache-2.0",
    "jaegertracing/jaeger": "Apache-2.0",
    "postgres": "PostgreSQL",
}
"""By the beginning of the name, where the list of dependencies does not say it: taken from the modules' own LICENSE files and poms."""


@dataclass(frozen=True, slots=True)
class Other:
    """One thing of somebody else's."""

    name: str
    version: str
    use: str
    licence: str


def others() -> list[Other]:
    """All of them, by use and name."""
    found = {*_go(), *_npm(), *_maven(), *_kept(), *_images()}
    return sorted(found, key=lambda other: (other.use, other.name, other.version))


def contract() -> Other:
    """The file of others that the generated code in our package is made from; it names no version but its content."""
    digest = hashlib.sha256((ROOT / "protos/buf/validate/validate.proto").read_bytes()).hexdigest()
    return Other("buf/validate/validate.proto", f"sha256:{digest}", "contract", "Apache-2.0")


def _licence(name: str) -> str:
    found = next((licence for beginning, licence in LICENCES.items() if name.startswith(beginning)), "")
    if not found:
        raise SystemExit(f"{name} does not say its licence; look it up and add it to LICENCES")
    return found


def _go() -> Iterator[Other]:
    """Every module that go.mod names."""
    for name, version in re.findall(r"^\t(\S+) (v\S+)", (CLIENTS / "go/go.mod").read_text(), re.MULTILINE):
        yield Other(name, version, "Go client", _licence(name))


def _npm() -> Iterator[Other]:
    """Every package that the lock names, with what it says of itself."""
    packages = json.loads((CLIENTS / "typescript/package-lock.json").read_text())["packages"]
    for place, package in packages.items():
        if place:
            name = place.rpartition("node_modules/")[2]
            yield Other(name, package["version"], "TypeScript client", package["license"].strip("()"))


def _maven() -> Iterator[Other]:
    """Every dependency and plugin that the pom names."""
    pom = ElementTree.parse(CLIENTS / "java/pom.xml").getroot()  # noqa: S314 - our own file
    properties = {f"${{{item.tag.removeprefix(POM)}}}": item.text or "" for item in pom.find(f"{POM}properties") or ()}
    for kind in ("dependency", "plugin", "binaryMavenPlugin"):
        for item in pom.iter(f"{POM}{kind}"):
            group = item.findtext(f"{POM}groupId", "org.apache.maven.plugins")
            version = item.findtext(f"{POM}version", "")
            name = f"{group}:{item.findtext(f'{POM}artifactId', '')}"
            yield Other(name, properties.get(version, version), "Java client", _licence(name))


def _kept() -> Iterator[Other]:
    """Files of others that are in this repository."""
    yield contract()
    axe = (ROOT / "tests/e2e/vendor/axe.min.js").read_text()
    found = re.search(r"axe v(\S+)", axe)
    yield Other("axe-core", found[1] if found else "", "tests of the console", "MPL-2.0")


def _images() -> Iterator[Other]:
    """Images that are not ours, by the tags that the manifests and the compose file name."""
    release = (ROOT / "deploy/kubernetes/components/release/kustomization.yaml").read_text()
    compose = (ROOT / "deploy/compose.yaml").read_text()
    named = re.findall(r"newName: (\S+), (?:newTag|digest): ([^\s}]+)", release) + re.findall(
        r"image: (\S+):(\S+)", compose
    )
    for name, tag in named:
        if not name.startswith("pointsman"):
            yield Other(name, tag, "cluster and compose", _licence(name))
