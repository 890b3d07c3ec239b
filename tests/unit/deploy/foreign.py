"""The schemas of kinds that cert-manager, KEDA and the Prometheus operator bring, as far as the manifests use them.

A field that is not here is refused, so whoever uses a new one looks it up and adds it. Taken from cert-manager 1.21, KEDA 2.21 and
Prometheus operator 0.85, whose full schemas all manifests here have passed.
"""

from typing import Any

import jsonschema  # type: ignore[import-untyped]  # comes with kubernetes-validate

from tests.unit.deploy.cluster import Manifest

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": "array", "items": TEXT}
LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
SWITCH: Schema = {"type": "boolean"}
GO_DURATION: Schema = {"type": "string", "pattern": "^([0-9]+(h|m|s|ms))+$"}
PROMETHEUS_DURATION: Schema = {
    "type": "string",
    "pattern": "^([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
}


def thing(*required: str, **fields: Schema) -> Schema:
    """An object with these fields and no other."""
    return {"type": "object", "properties": fields, "required": [*required], "additionalProperties": False}


def many(item: Schema) -> Schema:
    """A list with at least one item."""
    return {"type": "array", "items": item, "minItems": 1}


def number(least: int) -> Schema:
    """A whole number that is no smaller."""
    return {"type": "integer", "minimum": least}


def one_of(*values: str | int) -> Schema:
    """One of some values."""
    return {"enum": [*values]}


RULE = thing(
    "expr",
    alert=TEXT,
    record=TEXT,
    expr=TEXT,
    labels=LABELS,
    annotations=LABELS,
    **{"for": PROMETHEUS_DURATION, "keep_firing_for": PROMETHEUS_DURATION},
)
TRIGGER = thing("type", "metadata", type=TEXT, metadata=LABELS, authenticationRef=thing("name", name=TEXT))
SPECS: dict[tuple[str, str], Schema] = {
    ("cert-manager.io/v1", "Issuer"): thing(selfSigned=thing(), ca=thing("secretName", secretName=TEXT)),
    ("cert-manager.io/v1", "Certificate"): thing(
        "issuerRef",
        "secretName",
        secretName=TEXT,
        issuerRef=thing("name", name=TEXT, kind=one_of("Issuer", "ClusterIssuer")),
        isCA=SWITCH,
        commonName=TEXT,
        dnsNames=TEXTS,
        uris=TEXTS,
        duration=GO_DURATION,
        renewBefore=GO_DURATION,
        usages=many(one_of("digital signature", "key encipherment", "cert sign", "server auth", "client auth")),
        privateKey=thing(
            algorithm=one_of("RSA", "ECDSA", "Ed25519"),
            size=one_of(256, 384, 521, 2048, 4096),
            rotationPolicy=one_of("Never", "Always"),
        ),
    ),
    ("keda.sh/v1alpha1", "TriggerAuthentication"): thing(
        secretTargetRef=many(thing("parameter", "name", "key", parameter=TEXT, name=TEXT, key=TEXT))
    ),
    ("keda.sh/v1alpha1", "ScaledObject"): thing(
        "scaleTargetRef",
        "triggers",
        scaleTargetRef=thing("name", name=TEXT),
        minReplicaCount=number(0),
        maxReplicaCount=number(1),
        pollingInterval=number(1),
        cooldownPeriod=number(0),
        triggers=many(TRIGGER),
    ),
    ("monitoring.coreos.com/v1", "PrometheusRule"): thing(
        groups=many(thing("name", name=TEXT, interval=PROMETHEUS_DURATION, rules=many(RULE)))
    ),
    ("monitoring.coreos.com/v1", "ServiceMonitor"): thing(
        "endpoints",
        "selector",
        selector=thing(matchLabels=LABELS),
        endpoints=many(thing(port=TEXT, path=TEXT, interval=PROMETHEUS_DURATION)),
    ),
    ("monitoring.coreos.com/v1", "PodMonitor"): thing(
        "podMetricsEndpoints",
        "selector",
        selector=thing(matchLabels=LABELS),
        podMetricsEndpoints=many(thing(port=TEXT, path=TEXT, interval=PROMETHEUS_DURATION)),
    ),
}


def is_foreign(manifest: Manifest) -> bool:
    """Whether its kind is no part of Kubernetes."""
    return (manifest["apiVersion"], manifest["kind"]) in SPECS


def validate(manifest: Manifest) -> None:
    """Raise where a manifest of a foreign kind breaks its schema."""
    spec = SPECS[manifest["apiVersion"], manifest["kind"]]
    metadata = thing("name", name=TEXT, namespace=TEXT, labels=LABELS, annotations=LABELS)
    jsonschema.validate(manifest, thing("spec", "metadata", apiVersion=TEXT, kind=TEXT, metadata=metadata, spec=spec))
