"""What every manifest must keep, whatever it deploys."""

import json
import re
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from pointsman._shared.otlp import ENDPOINTS
from pointsman.api.orchestrator.v1 import agent_pb2, orchestrator_pb2
from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.api.router.v1 import router_pb2
from pointsman.api.workflow.v1 import workflow_pb2
from pointsman.cli.commands import COMMANDS
from pointsman.services.chassis.core.config import ClientSettings, PeerSettings, ServerSettings, StoreSettings
from pointsman.services.chassis.core.settings import Settings
from pointsman.services.chassis.rpc.grants import read_access
from pointsman.services.chassis.telemetry.metrics import declared_names
from pointsman.services.gateway.config import GatewaySettings
from tests.helpers.declared_metrics import DECLARED
from tests.unit.deploy import foreign
from tests.unit.deploy.cluster import (
    COMPONENTS,
    KUBERNETES,
    OVERLAYS,
    ROOT,
    SERVICES,
    Manifest,
    containers_of,
    labels_of,
    name_of,
    of_kind,
    pod_of,
    rendered,
    rendered_with,
    selects,
)

KUBERNETES_VERSION = "1.34"
SERVED = {
    service.full_name
    for module in (router_pb2, workflow_pb2, pipeline_pb2, orchestrator_pb2, agent_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
}


@pytest.fixture(params=[*OVERLAYS, "everything"])
def manifests(request: pytest.FixtureRequest) -> tuple[Manifest, ...]:
    """Each overlay in turn, and production with every optional component."""
    if request.param == "everything":
        return rendered_with("overlays/prod", COMPONENTS)
    return rendered(request.param)


def workloads(manifests: tuple[Manifest, ...]) -> list[Manifest]:
    return of_kind(manifests, "Deployment", "Job")


def stateful(overlay: str) -> list[Manifest]:
    """The Deployments of the four services that keep state."""
    names = {f"pointsman-{service}" for service in SERVICES}
    found = [manifest for manifest in of_kind(rendered(overlay), "Deployment") if name_of(manifest) in names]
    assert len(found) == len(SERVICES)
    return found


def settings_names() -> set[str]:
    contexts: list[type[Settings]] = [
        ServerSettings, StoreSettings, PeerSettings, ClientSettings, GatewaySettings,
    ]  # fmt: skip
    names = {settings.prefix + name.upper() for settings in contexts for name in settings.fields}
    return names | set(ENDPOINTS)


def environment_of(container: Manifest, manifests: tuple[Manifest, ...]) -> dict[str, object]:
    found = {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container.get("env", [])}
    for source in container.get("envFrom", []):
        settings = [m for m in of_kind(manifests, "ConfigMap") if name_of(m) == source["configMapRef"]["name"]]
        found |= settings[0]["data"]
    return found


def test_every_manifest_keeps_the_schema_of_its_kind(manifests: tuple[Manifest, ...]) -> None:
    for manifest in manifests:
        if foreign.is_foreign(manifest):
            foreign.validate(manifest)
        else:
            kubernetes_validate.validate(manifest, KUBERNETES_VERSION, strict=True)


def test_nothing_is_named_twice(manifests: tuple[Manifest, ...]) -> None:
    names = [(manifest["kind"], name_of(manifest)) for manifest in manifests]
    assert sorted(names) == sorted(set(names))


def test_every_container_is_limited_and_asks_for_what_it_needs(manifests: tuple[Manifest, ...]) -> None:
    for workload in workloads(manifests):
        for container in containers_of(workload):
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}, container["name"]
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}, container["name"]


def test_every_pod_is_allowed_under_restricted_pod_security(manifests: tuple[Manifest, ...]) -> None:
    for workload in workloads(manifests):
        pod = pod_of(workload)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))
        assert not [volume for volume in pod["volumes"] if "hostPath" in volume]
        for container in containers_of(workload):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}


def test_no_pod_has_a_token_of_the_cluster_or_names_of_its_services(manifests: tuple[Manifest, ...]) -> None:
    for workload in workloads(manifests):
        assert pod_of(workload)["automountServiceAccountToken"] is False
        assert pod_of(workload)["enableServiceLinks"] is False, (
            "POINTSMAN_ROUTER_… would be refused as unknown settings"
        )


def test_every_variable_is_a_setting_that_exists(manifests: tuple[Manifest, ...]) -> None:
    for workload in workloads(manifests):
        for container in containers_of(workload):
            assert set(environment_of(container, manifests)) <= settings_names(), container["name"]


def test_every_command_of_our_image_exists(manifests: tuple[Manifest, ...]) -> None:
    ours = [
        container
        for workload in workloads(manifests)
        for container in containers_of(workload)
        if container["image"].startswith("pointsman:")
    ]
    assert ours
    for container in ours:
        command, *arguments = container["args"]
        assert command in COMMANDS
        assert command != "serve" or arguments[0] in (*SERVICES, "gateway")


def test_secrets_come_by_reference_only(manifests: tuple[Manifest, ...]) -> None:
    assert of_kind(manifests, "Secret") == []
    for workload in workloads(manifests):
        for container in containers_of(workload):
            url = environment_of(container, manifests).get("POINTSMAN_DATABASE_URL")
            assert url is None or url == {"secretKeyRef": {"name": "pointsman-database", "key": "url"}}


def test_every_image_is_named_with_its_version(manifests: tuple[Manifest, ...]) -> None:
    for workload in workloads(manifests):
        for container in containers_of(workload):
            _, _, tag = container["image"].rpartition(":")
            assert any(character.isdigit() for character in tag), container["image"]


def test_every_mounted_thing_is_there(manifests: tuple[Manifest, ...]) -> None:
    certificates = {manifest["spec"]["secretName"] for manifest in of_kind(manifests, "Certificate")}
    maps = {name_of(manifest) for manifest in of_kind(manifests, "ConfigMap")}
    claims = {name_of(manifest) for manifest in of_kind(manifests, "PersistentVolumeClaim")}
    for workload in workloads(manifests):
        for volume in pod_of(workload)["volumes"]:
            assert volume.get("secret", {}).get("secretName", "") in {*certificates, ""}
            assert volume.get("configMap", {}).get("name", "") in {*maps, ""}
            assert volume.get("persistentVolumeClaim", {}).get("claimName", "") in {*claims, ""}


@pytest.mark.parametrize("overlay", ["overlays/dev", "overlays/prod"])
def test_every_probe_asks_for_a_service_that_is_served(overlay: str) -> None:
    for workload in stateful(overlay):
        container = pod_of(workload)["containers"][0]
        component = labels_of(workload)["app.kubernetes.io/component"]
        asked = container["readinessProbe"]["grpc"]["service"]
        assert asked in SERVED
        assert f".{component}." in asked
        for probe in ("startupProbe", "livenessProbe"):
            assert container[probe]["grpc"].get("service", "") in {*SERVED, ""}


@pytest.mark.parametrize("overlay", ["overlays/dev", "overlays/prod"])
def test_every_listening_port_is_in_a_policy_and_every_policy_names_a_listening_port(overlay: str) -> None:
    manifests = rendered(overlay)
    for workload in of_kind(manifests, "Deployment"):
        listening = {
            port["containerPort"] for container in containers_of(workload) for port in container.get("ports", [])
        }
        chosen = [
            policy
            for policy in of_kind(manifests, "NetworkPolicy")
            if selects(policy["spec"]["podSelector"], labels_of(workload))
        ]
        allowed = {
            port["port"] for policy in chosen for rule in policy["spec"].get("ingress", []) for port in rule["ports"]
        }
        assert listening == allowed, name_of(workload)


def test_everything_is_denied_that_no_edge_allows() -> None:
    (deny,) = [m for m in of_kind(rendered("overlays/prod"), "NetworkPolicy") if name_of(m) == "pointsman-deny"]
    assert deny["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def edges(manifests: tuple[Manifest, ...]) -> set[tuple[str, str]]:
    """Who may call whom, as both sides' policies allow it."""
    pods = [labels_of(workload) for workload in of_kind(manifests, "Deployment")]
    policies = of_kind(manifests, "NetworkPolicy")

    def allowed(owner: dict[str, str], other: dict[str, str], direction: str, side: str) -> bool:
        return any(
            selects(peer.get("podSelector", {}), other)
            for policy in policies
            if selects(policy["spec"]["podSelector"], owner)
            for rule in policy["spec"].get(direction, [])
            for peer in rule.get(side, [])
            if "namespaceSelector" not in peer
        )

    component = "app.kubernetes.io/component"
    return {
        (caller[component], called[component])
        for caller in pods
        for called in pods
        if allowed(caller, called, "egress", "to") and allowed(called, caller, "ingress", "from")
    }


def test_the_edges_are_those_of_the_architecture() -> None:
    calls = {("orchestrator", peer) for peer in ("router", "workflow", "pipeline")}
    calls |= {("gateway", service) for service in SERVICES}
    assert edges(rendered("overlays/prod")) == calls
    everything = rendered_with("overlays/prod", COMPONENTS)
    assert edges(everything) == {*calls, ("agent", "orchestrator"), ("verifier", "orchestrator")}


def test_every_service_is_headless_so_that_callers_spread_their_calls() -> None:
    services = of_kind(rendered("overlays/prod"), "Service")
    assert {name_of(service) for service in services} == {f"pointsman-{name}" for name in SERVICES}
    for service in services:
        assert service["spec"]["clusterIP"] == "None"
        deployments = of_kind(rendered("overlays/prod"), "Deployment")
        chosen = [d for d in deployments if selects({"matchLabels": service["spec"]["selector"]}, labels_of(d))]
        assert [name_of(deployment) for deployment in chosen] == [name_of(service)]


def test_a_stopping_pod_has_time_to_leave_the_rotation_and_to_drain() -> None:
    for workload in stateful("overlays/prod"):
        pod = pod_of(workload)
        container = pod["containers"][0]
        drain = float(environment_of(container, rendered("overlays/prod"))["POINTSMAN_SERVER_DRAIN_SECONDS"])  # type: ignore[arg-type]
        leaving = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        noticed = container["readinessProbe"]["periodSeconds"] * container["readinessProbe"]["failureThreshold"]
        assert leaving > noticed
        assert pod["terminationGracePeriodSeconds"] > leaving + drain


def test_production_has_two_replicas_of_each_service_spread_and_never_both_away() -> None:
    manifests = rendered("overlays/prod")
    for service in SERVICES:
        name = f"pointsman-{service}"
        (deployment,) = [m for m in of_kind(manifests, "Deployment") if name_of(m) == name]
        (scaler,) = [m for m in of_kind(manifests, "HorizontalPodAutoscaler") if name_of(m) == name]
        (budget,) = [m for m in of_kind(manifests, "PodDisruptionBudget") if name_of(m) == name]
        assert "replicas" not in deployment["spec"], "the autoscaler decides"
        assert scaler["spec"]["scaleTargetRef"]["name"] == name
        assert scaler["spec"]["minReplicas"] >= 2
        assert budget["spec"]["maxUnavailable"] == 1
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        spread = pod_of(deployment)["topologySpreadConstraints"]
        selectors = [constraint["labelSelector"] for constraint in spread] + [budget["spec"]["selector"]]
        assert all(selects(selector, labels_of(deployment)) for selector in selectors)


def test_development_has_one_replica_and_never_two_owners_of_a_file() -> None:
    for deployment in stateful("overlays/dev"):
        assert deployment["spec"]["replicas"] == 1
        assert deployment["spec"]["strategy"] == {"type": "Recreate"}
        assert "POINTSMAN_DATABASE_URL" not in environment_of(
            pod_of(deployment)["containers"][0], rendered("overlays/dev")
        )
        (data,) = [volume for volume in pod_of(deployment)["volumes"] if volume["name"] == "data"]
        assert data["persistentVolumeClaim"]["claimName"] == name_of(deployment)


@pytest.mark.parametrize("overlay", ["overlays/dev", "overlays/prod"])
def test_every_service_may_listen_where_its_settings_say_and_finds_its_files(overlay: str) -> None:
    for workload in stateful(overlay):
        container = pod_of(workload)["containers"][0]
        found = environment_of(container, rendered(overlay))
        settings = ServerSettings(
            **{
                name.removeprefix("POINTSMAN_SERVER_").lower(): value
                for name, value in found.items()
                if name.startswith("POINTSMAN_SERVER_")
            }  # type: ignore[arg-type]
        )
        settings.check_exposure()
        assert settings.requires_credentials
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        for file in (settings.tls_certificate, settings.tls_key, settings.client_authority, settings.access):
            assert str(file.parent) in mounted if file else False
        assert {settings.port, settings.metrics_port} == {port["containerPort"] for port in container["ports"]}


def test_everybody_who_calls_has_a_certificate_and_a_part_in_the_access_file() -> None:
    manifests = rendered_with("overlays/prod", COMPONENTS)
    issued = {uri for manifest in of_kind(manifests, "Certificate") for uri in manifest["spec"].get("uris", [])}
    named = {grant.name for grant in read_access(KUBERNETES / "base" / "access.json").principals}
    callers = {f"spiffe://pointsman/{caller}" for caller, _ in edges(manifests)}
    assert callers <= issued & named
    assert named - issued == {"spiffe://pointsman/operator"}, "people bring their own"


def test_the_gateway_has_no_store_and_is_asked_for_its_health() -> None:
    (gateway,) = [m for m in of_kind(rendered("overlays/prod"), "Deployment") if name_of(m) == "pointsman-gateway"]
    container = pod_of(gateway)["containers"][0]
    assert "POINTSMAN_DATABASE_URL" not in environment_of(container, rendered("overlays/prod"))
    assert gateway["spec"]["replicas"] >= 2
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": 7461}


def test_every_alert_has_its_paragraph_in_the_operations_manual() -> None:
    manual = (ROOT / "docs" / "operations.md").read_text().lower()
    (rules,) = of_kind(rendered_with("overlays/prod", COMPONENTS), "PrometheusRule")
    alerts = [rule for group in rules["spec"]["groups"] for rule in group["rules"]]
    assert alerts
    for alert in alerts:
        assert f"### {alert['alert'].lower()}" in manual
        assert alert["annotations"]["runbook"] == f"docs/operations.md#{alert['alert'].lower()}"


def test_every_alert_speaks_of_numbers_that_are_declared() -> None:
    (rules,) = of_kind(rendered_with("overlays/prod", COMPONENTS), "PrometheusRule")
    expressions = [rule["expr"] for group in rules["spec"]["groups"] for rule in group["rules"]]
    named = {name for expression in expressions for name in re.findall(r"pointsman_\w+", expression)}
    assert named
    assert named - declared_names() == set()


def test_the_dashboard_shows_every_number_and_only_numbers_that_are_declared() -> None:
    dashboard = json.loads((KUBERNETES / "components" / "monitoring" / "dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    named = {name for expression in expressions for name in re.findall(r"pointsman_\w+", expression)}
    assert named - declared_names() == set()
    families = {family.name for metric in DECLARED for family in metric.describe()}
    assert {family for family in families if not any(name.startswith(family) for name in named)} == set()


def test_scrapes_reach_the_port_where_the_services_count() -> None:
    manifests = rendered_with("overlays/prod", COMPONENTS)
    (monitor,) = of_kind(manifests, "ServiceMonitor")
    for service in of_kind(manifests, "Service"):
        assert selects(monitor["spec"]["selector"], service["metadata"]["labels"])
        assert monitor["spec"]["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]
    (gateways,) = of_kind(manifests, "PodMonitor")
    (gateway,) = [m for m in of_kind(manifests, "Deployment") if name_of(m) == "pointsman-gateway"]
    assert selects(gateways["spec"]["selector"], labels_of(gateway))
    (port,) = pod_of(gateway)["containers"][0]["ports"]
    assert port["name"] == gateways["spec"]["podMetricsEndpoints"][0]["port"]
    found = environment_of(pod_of(gateway)["containers"][0], manifests)
    assert found["POINTSMAN_GATEWAY_METRICS_PORT"] == str(port["containerPort"])


def test_every_deployment_of_ours_is_missed_when_it_is_down_and_when_it_is_gone() -> None:
    (rules,) = of_kind(rendered_with("overlays/prod", COMPONENTS), "PrometheusRule")
    alerts = {rule["alert"]: rule["expr"] for group in rules["spec"]["groups"] for rule in group["rules"]}
    expression = alerts["PointsmanServiceDown"]
    (down,) = re.findall(r'deployment=~"([^"]+)"\} == 0', expression)
    gone = re.findall(r'absent\([^)]*deployment="([^"]+)"', expression)
    deployments = [name_of(deployment) for deployment in of_kind(rendered("overlays/prod"), "Deployment")]
    assert all(re.fullmatch(down, name) for name in deployments)
    assert sorted(gone) == sorted(deployments)


def test_every_file_below_kubernetes_is_used() -> None:
    listed: set[Path] = set()
    for kustomization in KUBERNETES.rglob("kustomization.yaml"):
        document = yaml.safe_load(kustomization.read_text())
        generated = [
            name for generator in document.get("configMapGenerator", []) for name in generator.get("files", [])
        ]
        listed |= {(kustomization.parent / name).resolve() for name in (*document.get("resources", []), *generated)}
    files = {path.resolve() for path in KUBERNETES.rglob("*.yaml") if path.name != "kustomization.yaml"}
    assert files - listed == set()
