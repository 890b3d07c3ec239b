"""Applies deploy/ to a real control plane as docs/operations.md says, upgrades, rolls back, and plants three faults."""

import copy
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.acceptance.cluster.checks import WORKLOADS, is_up, problems
from tests.acceptance.cluster.control_plane import Cluster, control_plane
from tests.acceptance.cluster.tools import VERSIONS, built, certificate_kinds
from tests.helpers.eventually import eventually_now
from tests.unit.deploy.cluster import COMPONENTS, Manifest, name_of, of_kind, pod_of, rendered, rendered_with

NAMESPACE = "pointsman"
UP_SECONDS = 180
REFUSED_SECONDS = 60
FOREIGN = {"PrometheusRule", "PodMonitor", "ServiceMonitor", "ScaledObject", "TriggerAuthentication"}
"""Kinds of the Prometheus operator and of KEDA, which are not installed here; tests/unit/deploy checks their schemas."""


def main(folder: Path) -> int:
    """All of it; the exit code."""
    if shutil.which("go") is None:
        print("NOT CHECKED: Go is not installed, which builds the control plane; install Go 1.24 or newer")
        return 0
    programs = built(folder)
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    with (
        tempfile.TemporaryDirectory(prefix="pointsman-cluster-") as made,
        control_plane(programs, Path(made)) as cluster,
    ):
        _say(f"Kubernetes {VERSIONS['kubernetes']} with a node of kwok {VERSIONS['kwok']} serves")
        _prepare(cluster)
        _install(cluster)
        _upgrade_and_roll_back(cluster)
        for fault in FAULTS:
            _planted(cluster, fault)
    _say("everything that deploy/ has was accepted, admitted and rolled; each planted fault was found")
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _prepare(cluster: Cluster) -> None:
    """What the documentation expects to be there: cert-manager's kinds, and the secret of the database."""
    for text in certificate_kinds():
        _accepted(cluster.apply([yaml.safe_load(text)]))
    cluster.run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    _namespace(cluster, NAMESPACE)


def _namespace(cluster: Cluster, name: str) -> None:
    cluster.run("create", "namespace", name)
    cluster.run(
        "-n", name, "create", "secret", "generic", "pointsman-database", "--from-literal=url=postgresql://u@h/d"
    )


def _install(cluster: Cluster) -> None:
    """The migration, then production with every component, then that nothing leads nowhere."""
    _accepted(cluster.apply(_known(rendered("overlays/prod/migrate"))))
    _wait_until_up(cluster, NAMESPACE)
    _say("the migration was accepted and its Job completed")
    manifests = _known(rendered_with("overlays/prod", COMPONENTS))
    for secret in _given_by_people(manifests):
        cluster.run("-n", NAMESPACE, "create", "secret", "generic", secret, "--from-literal=it=it")
    _accepted(cluster.apply(manifests))
    _wait_until_up(cluster, NAMESPACE)
    found = problems(cluster, NAMESPACE)
    if found:
        raise SystemExit("\n".join(found))
    _say(f"production: {len(manifests)} objects accepted, every Deployment rolled under restricted pod security")


def _given_by_people(manifests: list[Manifest]) -> set[str]:
    """Secrets that no manifest brings and that the documentation tells people to create."""
    text = (Path(__file__).resolve().parents[3] / "docs" / "operations.md").read_text()
    named = {
        source["secret"]["secretName"]
        for workload in of_kind(manifests, "Deployment")
        for source in pod_of(workload).get("volumes", ())
        if "secret" in source
    }
    return {name for name in named if f"secret generic {name}" in text}


def _upgrade_and_roll_back(cluster: Cluster) -> None:
    """Another tag of the image rolls every Deployment of ours, and `rollout undo` brings the first one back."""
    manifests = _known(rendered("overlays/prod"))
    before = {name_of(one): _images(one) for one in of_kind(manifests, "Deployment")}
    upgraded = copy.deepcopy(manifests)
    for workload in of_kind(upgraded, "Deployment"):
        for container in pod_of(workload)["containers"]:
            container["image"] += "-next"
    _accepted(cluster.apply(upgraded))
    _wait_until_up(cluster, NAMESPACE)
    for name in before:
        cluster.run("-n", NAMESPACE, "rollout", "undo", f"deployment/{name}")
    _wait_until_up(cluster, NAMESPACE)
    after = {name_of(one): _images(one) for one in cluster.listed("deployments", NAMESPACE) if name_of(one) in before}
    if after != before:
        raise SystemExit(f"the rollback left other images: {after}")
    _say(f"an upgrade of {len(before)} Deployments and its rollback rolled")


def _images(workload: Manifest) -> list[str]:
    return [str(container["image"]) for container in pod_of(workload)["containers"]]


def _bad_probe(pod: Any) -> None:
    pod["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": "no-such-port"}}


def _no_limit(pod: Any) -> None:
    del pod["containers"][0]["resources"]["limits"]["memory"]


def _forbidden_capability(pod: Any) -> None:
    pod["containers"][0]["securityContext"]["capabilities"] = {"add": ["SYS_ADMIN"], "drop": ["ALL"]}


FAULTS: dict[Callable[[Any], None], str] = {
    _bad_probe: "asks the port 'no-such-port', which it does not have",
    _no_limit: "has no limit of memory",
    _forbidden_capability: "SYS_ADMIN",
}
"""Each fault, and what is said about it."""


def _planted(cluster: Cluster, fault: Callable[[Any], None]) -> None:
    """One Deployment with a fault in a namespace of its own, with the rules of ours."""
    namespace = fault.__name__.strip("_").replace("_", "-")
    _namespace(cluster, namespace)
    manifests = copy.deepcopy(_known(rendered("overlays/prod")))
    space = next(one for one in manifests if one["kind"] == "Namespace")
    workload = copy.deepcopy(of_kind(manifests, "Deployment")[-1])
    fault(pod_of(workload))
    space["metadata"]["name"] = namespace
    cluster.apply([space], "--force-conflicts")
    workload["metadata"]["namespace"] = namespace
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pointsman", "namespace": namespace}}
    _accepted(cluster.apply([account, workload]))
    said = eventually_now(
        lambda: [one for one in problems(cluster, namespace) if FAULTS[fault] in one], REFUSED_SECONDS
    )
    _say(f"planted: {said[0][:200]}")


def _known(manifests: tuple[Manifest, ...]) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] not in FOREIGN]


def _accepted(complaint: str) -> None:
    if complaint:
        raise SystemExit(f"the cluster refused:\n{complaint}")


def _wait_until_up(cluster: Cluster, namespace: str) -> None:
    try:
        eventually_now(lambda: all(map(is_up, cluster.listed(WORKLOADS, namespace))), UP_SECONDS)
    except AssertionError:
        raise SystemExit("\n".join(problems(cluster, namespace))) from None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
