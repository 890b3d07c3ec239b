"""The image and the compose file: what they copy is there, what they start exists, what they set is a setting."""

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from pointsman.cli.commands import COMMANDS
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.gateway.config import DEFAULT_GATEWAY_PORT
from pointsman.services.orchestrator.__main__ import MIGRATIONS
from pointsman.services.orchestrator.store.children import LEASED, OPEN
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer
from tests.unit.deploy.cluster import KUBERNETES, ROOT, SERVICES
from tests.unit.deploy.test_manifests import settings_names

DEPLOY = ROOT / "deploy"
IMAGES = [DEPLOY / "Containerfile", ROOT / "clients" / "go" / "Containerfile"]


def instructions(containerfile: Path) -> list[tuple[str, str]]:
    """Each instruction with its words, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", containerfile.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("containerfile", IMAGES, ids=lambda path: path.parent.name)
def test_an_image_copies_only_what_is_there(containerfile: Path) -> None:
    context = ROOT
    for word, rest in instructions(containerfile):
        if word == "COPY" and "--from" not in rest:
            *sources, _target = rest.split()
            assert [source for source in sources if not (context / source).exists()] == []


@pytest.mark.parametrize("containerfile", IMAGES, ids=lambda path: path.parent.name)
def test_an_image_has_stages_no_root_and_no_shell_in_its_command(containerfile: Path) -> None:
    found = instructions(containerfile)
    assert len([1 for word, _ in found if word == "FROM"]) == 2
    assert ("USER", "65532:65532") in found
    last = [index for index, (word, _) in enumerate(found) if word == "FROM"][-1]
    assert "RUN" not in [word for word, _ in found[last:]], "the last stage has no shell to run anything with"
    for word, rest in found:
        if word in ("ENTRYPOINT", "CMD"):
            assert rest.startswith("["), "without brackets a shell would be needed"


def test_the_image_starts_our_command_line() -> None:
    (entry,) = [rest for word, rest in instructions(IMAGES[0]) if word == "ENTRYPOINT"]
    assert entry == '["/usr/bin/python3", "-m", "pointsman.cli"]'


def test_the_image_is_built_from_hashes_and_with_a_fixed_date() -> None:
    text = IMAGES[0].read_text()
    installs = re.findall(r"pip install (.+)", text)
    assert all("--require-hashes" in line or line.endswith("/app . \\") for line in installs)
    assert "SOURCE_DATE_EPOCH=" in text


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return document


def test_compose_starts_every_service_and_migrates_first() -> None:
    services = compose()["services"]
    assert set(SERVICES) <= set(services)
    for name in SERVICES:
        command = services[name]["command"]
        assert command[:2] == ["serve", name]
        assert services[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert services["migrate"]["command"][0] in COMMANDS


def test_compose_sets_only_settings_that_exist_and_limits_every_container() -> None:
    for name, service in compose()["services"].items():
        assert service["mem_limit"], name
        if service["image"].startswith("pointsman:"):
            assert set(service["environment"]) <= settings_names()
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]


def test_compose_opens_no_port_beyond_loopback() -> None:
    for service in compose()["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_compose_points_orchestrator_and_gateway_at_the_ports_of_their_peers() -> None:
    services = compose()["services"]
    ports = {name: services[name]["command"][3] for name in SERVICES}
    assert len({*ports.values(), str(DEFAULT_GATEWAY_PORT)}) == len(ports) + 1
    for name, port in ports.items():
        expected = f"127.0.0.1:{port}"
        variable = f"POINTSMAN_PEERS_{name.upper()}"
        assert services["gateway"]["environment"][variable] == expected
        assert name == "orchestrator" or services["orchestrator"]["environment"][variable] == expected


def test_agents_are_scaled_by_a_query_that_the_store_answers(postgres: PostgresServer) -> None:
    url = new_postgres_database(postgres)
    database = Database(url, "orchestrator")
    migrate(database, MIGRATIONS)
    database.close()
    documents = list(yaml.safe_load_all((KUBERNETES / "components" / "agents" / "scaling.yaml").read_text()))
    (scaled,) = [document for document in documents if document["kind"] == "ScaledObject"]
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]
    assert f"IN ('{OPEN}', '{LEASED}')" in query
    with psycopg.connect(url) as connection:
        assert connection.execute(query).fetchone() == (0,)
