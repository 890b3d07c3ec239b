"""The rules for manifests, each shown to find the fault that is planted for it."""

import copy
from collections.abc import Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from kubernetes_validate import ValidationError  # type: ignore[import-untyped]

from tests.unit.deploy import foreign
from tests.unit.deploy import test_manifests as rules
from tests.unit.deploy.cluster import COMPONENTS, Manifest, of_kind, pod_of, rendered, rendered_with

Rule = Callable[[tuple[Manifest, ...]], None]
Fault = Callable[[Any], None]


def limits(pod: Any) -> None:
    del pod["containers"][0]["resources"]["limits"]["memory"]


def root(pod: Any) -> None:
    pod["securityContext"]["runAsNonRoot"] = False


def writable(pod: Any) -> None:
    pod["initContainers"][0]["securityContext"]["readOnlyRootFilesystem"] = False


def links(pod: Any) -> None:
    pod["enableServiceLinks"] = True


def setting(pod: Any) -> None:
    pod["containers"][0]["env"].append({"name": "POINTSMAN_SERVER_PROT", "value": "7460"})


def command(pod: Any) -> None:
    pod["containers"][0]["args"] = ["serve", "no-such-service"]


def secret(pod: Any) -> None:
    pod["containers"][0]["env"].append({"name": "POINTSMAN_DATABASE_URL", "value": "postgresql://u:p@h/d"})


def tag(pod: Any) -> None:
    pod["containers"][0]["image"] = "pointsman:latest"


def volume(pod: Any) -> None:
    pod["volumes"][0] = {"name": "envoy", "configMap": {"name": "no-such-map"}}


def schema(pod: Any) -> None:
    pod["containers"][0]["livenes"] = {}


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (rules.test_every_container_is_limited_and_asks_for_what_it_needs, limits),
        (rules.test_every_pod_is_allowed_under_restricted_pod_security, root),
        (rules.test_every_pod_is_allowed_under_restricted_pod_security, writable),
        (rules.test_no_pod_has_a_token_of_the_cluster_or_names_of_its_services, links),
        (rules.test_every_variable_is_a_setting_that_exists, setting),
        (rules.test_every_command_of_our_image_exists, command),
        (rules.test_secrets_come_by_reference_only, secret),
        (rules.test_every_image_is_named_with_its_version, tag),
        (rules.test_every_mounted_thing_is_there, volume),
        (rules.test_every_manifest_keeps_the_schema_of_its_kind, schema),
    ],
)
def test_a_rule_finds_the_fault_planted_for_it(rule: Rule, fault: Fault) -> None:
    manifests = copy.deepcopy(rendered("overlays/prod"))
    rule(manifests)
    fault(pod_of(of_kind(manifests, "Deployment")[-1]))
    with pytest.raises((AssertionError, ValidationError)):
        rule(manifests)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Issuer", ("ca",), {}),
        ("Certificate", ("issuerRef",), {"kind": "Issuer"}),
        ("Certificate", ("renewbefore",), "240h"),
        ("Certificate", ("duration",), "30 days"),
        ("Certificate", ("usages",), ["server authentication"]),
        ("ScaledObject", ("triggers", 0, "metadata", "targetQueryValue"), 4),
        ("ScaledObject", ("maxReplicas",), 50),
        ("TriggerAuthentication", ("secretTargetRef", 0, "secret"), "url"),
        ("PrometheusRule", ("groups", 0, "rules", 0, "for"), "ten minutes"),
        ("PrometheusRule", ("groups", 0, "rules", 0, "labels", "severity"), 1),
        ("ServiceMonitor", ("endpoints", 0, "port"), 7462),
    ],
)
def test_a_fault_in_a_kind_of_somebody_else_is_found(kind: str, path: tuple[str | int, ...], value: object) -> None:
    (manifest, *_) = copy.deepcopy(of_kind(rendered_with("overlays/prod", COMPONENTS), kind))
    foreign.validate(manifest)
    part: Any = manifest["spec"]
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        foreign.validate(manifest)


def test_every_foreign_schema_is_used() -> None:
    everything = rendered_with("overlays/prod", COMPONENTS)
    assert {(m["apiVersion"], m["kind"]) for m in everything if foreign.is_foreign(m)} == set(foreign.SPECS)


def test_a_missing_policy_shows_as_a_missing_edge() -> None:
    whole = rules.edges(rendered("overlays/prod"))
    for name, lost in (("pointsman-peers", ("orchestrator", "router")), ("pointsman-gateway", ("gateway", "router"))):
        assert lost in whole
        assert lost not in rules.edges(without_policies(name))


def without_policies(name: str) -> tuple[Manifest, ...]:
    return tuple(
        manifest
        for manifest in rendered("overlays/prod")
        if (manifest["kind"], manifest["metadata"]["name"]) != ("NetworkPolicy", name)
    )
