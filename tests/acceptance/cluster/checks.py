"""What has to hold of the objects in a namespace after they were applied: each sentence names what it does not hold of."""

from collections.abc import Iterator
from typing import Any

from tests.acceptance.cluster.control_plane import Cluster
from tests.unit.deploy.cluster import containers_of, labels_of, name_of, pod_of, selects

Object = dict[str, Any]
WORKLOADS = "deployments,jobs"


def problems(cluster: Cluster, namespace: str) -> list[str]:
    """Everything that refers to what is not there, has no limit, or did not come up."""
    workloads = cluster.listed(WORKLOADS, namespace)
    return [
        *_not_up(cluster, workloads, namespace),
        *(problem for workload in workloads for problem in _of_containers(workload)),
        *_of_mounts(cluster, workloads, namespace),
        *_of_scaling(cluster, workloads, namespace),
        *_of_services(cluster, workloads, namespace),
    ]


def is_up(workload: Object) -> bool:
    """Whether a Deployment has all its replicas, of this revision, or a Job is complete."""
    status = workload.get("status", {})
    if workload["kind"] == "Job":
        return bool(status.get("succeeded"))
    wanted, seen = workload["spec"].get("replicas", 1), status.get("observedGeneration", 0)
    counts = (status.get("updatedReplicas", 0), status.get("availableReplicas", 0), status.get("replicas", 0))
    return seen >= workload["metadata"]["generation"] and counts == (wanted, wanted, wanted)


def _not_up(cluster: Cluster, workloads: list[Object], namespace: str) -> Iterator[str]:
    refused = [event for event in cluster.listed("events", namespace) if event["reason"] == "FailedCreate"]
    for workload in workloads:
        if not is_up(workload):
            said = [
                event["message"] for event in refused if event["involvedObject"]["name"].startswith(name_of(workload))
            ]
            yield f"{workload['kind']} {name_of(workload)} is not up: {said[-1] if said else workload.get('status')}"


def _of_containers(workload: Object) -> Iterator[str]:
    for container in containers_of(workload):
        where = f"{workload['kind']} {name_of(workload)}, container {container['name']}"
        limits = container.get("resources", {}).get("limits", {})
        yield from (f"{where} has no limit of {what}" for what in ("cpu", "memory") if what not in limits)
        ports = {port.get("name") for port in container.get("ports", ())}
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = container.get(kind, {})
            port = next((probe[way]["port"] for way in ("httpGet", "tcpSocket", "grpc") if way in probe), None)
            if isinstance(port, str) and port not in ports:
                yield f"{where}: its {kind} asks the port '{port}', which it does not have"


def _of_mounts(cluster: Cluster, workloads: list[Object], namespace: str) -> Iterator[str]:
    """Configuration and secrets that pods name: applied, or issued by a Certificate that was applied."""
    maps = {name_of(found) for found in cluster.listed("configmaps", namespace)}
    secrets = {name_of(found) for found in cluster.listed("secrets", namespace)}
    secrets |= {found["spec"]["secretName"] for found in cluster.listed("certificates.cert-manager.io", namespace)}
    accounts = {name_of(found) for found in cluster.listed("serviceaccounts", namespace)}
    for workload in workloads:
        where, pod = f"{workload['kind']} {name_of(workload)}", pod_of(workload)
        for named, there, what in ((_maps_of(pod), maps, "ConfigMap"), (_secrets_of(pod), secrets, "Secret")):
            yield from (f"{where} names the {what} {name}, which is not there" for name in sorted(set(named) - there))
        if pod.get("serviceAccountName", "default") not in accounts:
            yield f"{where} names the ServiceAccount {pod['serviceAccountName']}, which is not there"


def _sources_of(pod: Object) -> Iterator[Object]:
    """Volumes, parts of projected volumes, and environments."""
    for volume in pod.get("volumes", ()):
        yield volume
        yield from volume.get("projected", {}).get("sources", ())
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        yield from container.get("envFrom", ())
        yield from (entry["valueFrom"] for entry in container.get("env", ()) if "valueFrom" in entry)


def _maps_of(pod: Object) -> Iterator[str]:
    for source in _sources_of(pod):
        for key in ("configMap", "configMapRef", "configMapKeyRef"):
            if key in source and not source[key].get("optional"):
                yield source[key]["name"]


def _secrets_of(pod: Object) -> Iterator[str]:
    for source in _sources_of(pod):
        for key in ("secret", "secretRef", "secretKeyRef"):
            if key in source and not source[key].get("optional"):
                yield source[key].get("secretName") or source[key]["name"]


def _of_scaling(cluster: Cluster, workloads: list[Object], namespace: str) -> Iterator[str]:
    deployments = {name_of(workload) for workload in workloads if workload["kind"] == "Deployment"}
    for scaler in cluster.listed("horizontalpodautoscalers", namespace):
        target = scaler["spec"]["scaleTargetRef"]["name"]
        if target not in deployments:
            yield f"HorizontalPodAutoscaler {name_of(scaler)} scales {target}, which is not there"
    for kind, field in (("poddisruptionbudgets", "selector"), ("networkpolicies", "podSelector")):
        for found in cluster.listed(kind, namespace):
            if not any(selects(found["spec"][field], labels_of(workload)) for workload in workloads):
                yield f"{found['kind']} {name_of(found)} chooses no pod"


def _of_services(cluster: Cluster, workloads: list[Object], namespace: str) -> Iterator[str]:
    for service in cluster.listed("services", namespace):
        selector = {"matchLabels": service["spec"].get("selector", {})}
        chosen = [workload for workload in workloads if selects(selector, labels_of(workload))]
        if not chosen:
            yield f"Service {name_of(service)} chooses no pod"
        for port in service["spec"]["ports"]:
            asked = port.get("targetPort")
            named = {
                one.get("name")
                for workload in chosen
                for part in containers_of(workload)
                for one in part.get("ports", ())
            }
            if isinstance(asked, str) and asked not in named:
                yield f"Service {name_of(service)} leads to the port '{asked}', which its pods do not have"
