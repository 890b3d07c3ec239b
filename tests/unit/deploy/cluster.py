"""The manifests as a cluster would get them, and how to find one's way in them."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
KUBERNETES = ROOT / "deploy" / "kubernetes"
OVERLAYS = ("overlays/dev", "overlays/prod", "overlays/prod/migrate")
COMPONENTS = ("components/agents", "components/monitoring")
SERVICES = ("router", "workflow", "pipeline", "orchestrator")

Manifest = dict[str, Any]


@cache
def rendered(overlay: str) -> tuple[Manifest, ...]:
    """Every manifest of an overlay."""
    return _rendered(KUBERNETES / overlay)


@cache
def rendered_with(overlay: str, components: tuple[str, ...]) -> tuple[Manifest, ...]:
    """The same with optional components, put together in a folder for the moment."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder).resolve()
        _put_together(overlay, components, here)
        return _rendered(here)


def _put_together(overlay: str, components: tuple[str, ...], here: Path) -> None:
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "pointsman",
        "resources": [os.path.relpath(KUBERNETES / overlay, here)],
        "components": [
            os.path.relpath(KUBERNETES / component, here) for component in (*components, "components/release")
        ],
    }
    (here / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))


def _rendered(folder: Path) -> tuple[Manifest, ...]:
    text = subprocess.run([*_renderer(), str(folder)], check=True, capture_output=True, text=True).stdout
    return tuple(yaml.safe_load_all(text))


def _renderer() -> list[str]:
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    pytest.skip("NOT CHECKED: neither kustomize nor kubectl is on this machine, so the manifests were not rendered")


def of_kind(manifests: Sequence[Manifest], *kinds: str) -> list[Manifest]:
    """The manifests of these kinds."""
    return [manifest for manifest in manifests if manifest["kind"] in kinds]


def name_of(manifest: Manifest) -> str:
    """A manifest's name."""
    return str(manifest["metadata"]["name"])


def pod_of(workload: Manifest) -> Manifest:
    """The pod that a Deployment or Job makes."""
    spec: Manifest = workload["spec"]["template"]["spec"]
    return spec


def labels_of(workload: Manifest) -> dict[str, str]:
    """The labels of the pods that a Deployment or Job makes."""
    labels: dict[str, str] = workload["spec"]["template"]["metadata"]["labels"]
    return labels


def containers_of(workload: Manifest) -> Iterator[Manifest]:
    """Its containers and sidecars."""
    yield from pod_of(workload).get("initContainers", [])
    yield from pod_of(workload)["containers"]


def selects(selector: Manifest, labels: dict[str, str]) -> bool:
    """Whether a label selector chooses pods with these labels."""
    wanted = selector.get("matchLabels", {})
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(labels.get(rule["key"]) in rule["values"] for rule in selector.get("matchExpressions", []))
