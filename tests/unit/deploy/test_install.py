"""The install of the manual, step by step as it is pasted: nothing waits for what only a later step brings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.unit.deploy.cluster import (
    KUBERNETES,
    ROOT,
    Manifest,
    containers_of,
    labels_of,
    name_of,
    of_kind,
    pod_of,
    rendered,
    selects,
)

MIGRATE = "overlays/prod/migrate"
Thing = tuple[str, str]


@dataclass(slots=True)
class Namespace:
    """What is in the cluster's namespace so far."""

    manifests: dict[Thing, Manifest] = field(default_factory=dict)
    secrets: set[Thing] = field(default_factory=set)

    def things(self) -> set[Thing]:
        """Everything that a pod can refer to."""
        issued = {m["spec"]["secretName"] for m in of_kind(tuple(self.manifests.values()), "Certificate")}
        return {*self.manifests, *self.secrets, *(("Secret", name) for name in issued)}

    def apply(self, overlay: str) -> None:
        """Add an overlay, as `kubectl apply -k` would."""
        self.manifests |= {(m["kind"], name_of(m)): m for m in rendered(overlay)}


def steps() -> list[str]:
    """The commands of the manual's install, in their order."""
    manual = (ROOT / "docs" / "operations.md").read_text()
    (block,) = re.findall(r"## Install in a cluster\n.*?```sh\n(.*?)```", manual, re.DOTALL)
    return [command.strip() for line in block.splitlines() for command in line.split(" && ")]


def follow(commands: list[str]) -> Iterator[tuple[str, Namespace]]:
    """The namespace after each overlay that the commands apply."""
    namespace = Namespace()
    for command in commands:
        if created := re.search(r"create namespace (\S+)", command):
            namespace.manifests["Namespace", created[1]] = {"kind": "Namespace"}
        if secret := re.search(r"create secret generic (\S+) --from-literal=(\w+)=", command):
            namespace.secrets |= {("Secret", secret[1]), (f"Secret {secret[1]}", secret[2])}
        if applied := re.search(r"apply -k (\S+)", command):
            overlay = str((ROOT / applied[1]).relative_to(KUBERNETES))
            namespace.apply(overlay)
            yield overlay, namespace


def references(workload: Manifest) -> set[Thing]:
    """Everything that has to be there before a workload's pods start."""
    pod = pod_of(workload)
    found = {("Namespace", workload["metadata"]["namespace"]), ("ServiceAccount", pod["serviceAccountName"])}
    for container in containers_of(workload):
        found |= {("ConfigMap", source["configMapRef"]["name"]) for source in container.get("envFrom", [])}
        for entry in container.get("env", []):
            if reference := entry.get("valueFrom", {}).get("secretKeyRef"):
                found |= {("Secret", reference["name"]), (f"Secret {reference['name']}", reference["key"])}
    for volume in pod["volumes"]:
        found |= {("Secret", volume["secret"]["secretName"])} if "secret" in volume else set()
        found |= {("ConfigMap", volume["configMap"]["name"])} if "configMap" in volume else set()
    return found


def ways_out(workload: Manifest, manifests: tuple[Manifest, ...]) -> set[int]:
    """The ports that the policies let a workload's pods reach."""
    return {
        port["port"]
        for policy in of_kind(manifests, "NetworkPolicy")
        if selects(policy["spec"]["podSelector"], labels_of(workload))
        for rule in policy["spec"].get("egress", [])
        for port in rule["ports"]
    }


def test_everything_that_a_step_starts_finds_what_it_refers_to() -> None:
    applied = []
    for overlay, namespace in follow(steps()):
        applied.append(overlay)
        for workload in of_kind(rendered(overlay), "Deployment", "Job"):
            assert references(workload) - namespace.things() == set(), (overlay, name_of(workload))
    assert applied == [MIGRATE, "overlays/prod"]


def test_what_a_step_waits_for_is_applied_before() -> None:
    waited = 0
    for place, command in enumerate(steps()):
        if found := re.search(r"\bwait\b.* (job|deployment)/(\S+)", command):
            *_, (_, namespace) = follow(steps()[:place])
            assert (found[1].capitalize(), found[2]) in namespace.things()
            waited += 1
    assert waited == 1


def test_the_migration_reaches_names_and_the_database_before_any_service_is_there() -> None:
    (job,) = of_kind(rendered(MIGRATE), "Job")
    assert ways_out(job, rendered(MIGRATE)) == {53, 5432}


def test_what_the_migration_brings_is_what_the_services_come_with() -> None:
    later = {(m["kind"], name_of(m)): m for m in rendered("overlays/prod")}
    for manifest in rendered(MIGRATE):
        if manifest["kind"] != "Job":
            assert later[manifest["kind"], name_of(manifest)] == manifest


def test_a_secret_that_no_step_makes_is_missed() -> None:
    (overlay, namespace), *_ = follow([command for command in steps() if "create secret" not in command])
    (job,) = of_kind(rendered(overlay), "Job")
    missed = {("Secret", "pointsman-database"), ("Secret pointsman-database", "url")}
    assert references(job) - namespace.things() == missed
