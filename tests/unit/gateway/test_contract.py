"""The paths come from the protos, all of them; the document too."""

import importlib
import pkgutil
from typing import Any

import msgspec
import pytest
from starlette.datastructures import Headers

import pointsman.api
from pointsman.services.chassis.core.errors import CODE_OF, Code, Refusal
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.gateway.contract import METHODS, services
from pointsman.services.gateway.errors import HTTP_STATUS, Rejected, body_of
from pointsman.services.gateway.openapi import DOCUMENT, MOCK_PATH
from pointsman.services.gateway.security import POLICY, Guard, served_names


def test_every_service_of_the_api_has_its_paths() -> None:
    modules = pkgutil.walk_packages(pointsman.api.__path__, "pointsman.api.")
    loaded = [importlib.import_module(one.name) for one in modules if one.name.endswith("_pb2")]
    declared = {name for module in loaded for name in _services(module)}
    assert declared == {service.full_name for service in services()}
    offered = [one for service in services() for one in service.methods]
    assert len(METHODS) == len(offered)


def _services(module: Any) -> list[str]:
    return [service.full_name for service in module.DESCRIPTOR.services_by_name.values()]


def test_only_what_changes_nothing_is_answered_to_get() -> None:
    reads = {path.removeprefix("/api/v1/") for path, method in METHODS.items() if method.is_read}
    assert {"orchestrator.OrchestratorService/GetRun", "orchestrator.AgentService/ListAgents"} <= reads
    assert {"pipeline.PipelineService/Classify", "workflow.WorkflowService/WatchChanges"} <= reads
    changes = {"OrchestratorService/Submit", "AgentService/Poll", "ArtifactService/Put", "MockService/SetMockPolicy"}
    assert not reads & {f"orchestrator.{name}" for name in changes}
    assert "router.RouterService/Classify" not in reads


def test_streams_of_transitions_can_be_resumed() -> None:
    resumable = {method.name for method in METHODS.values() if method.resume_field}
    assert resumable == {"WatchRun", "WatchEntry", "WatchChanges", "WatchPipeline", "WatchWorkflow"}


def test_the_document_describes_every_path_and_refers_to_nothing_that_is_missing() -> None:
    document = msgspec.json.decode(DOCUMENT.read_bytes())
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {*METHODS, MOCK_PATH}
    schemas = document["components"]["schemas"]
    assert set(_references(document)) <= {f"#/components/schemas/{name}" for name in schemas}
    run = schemas["orchestrator.v1.Run"]
    assert run["properties"]["intent"]["description"].startswith("The submitted message")
    assert schemas["orchestrator.v1.SubmitRequest"]["required"] == ["request_id", "message"]
    assert "Terminal." in schemas["orchestrator.v1.RunState"]["description"]


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [one for item in value.values() for one in _references(item)]
    return [one for item in value for one in _references(item)] if isinstance(value, list) else []


def test_every_code_has_a_status_and_every_reason_a_body() -> None:
    assert set(HTTP_STATUS) == set(Code)
    for reason in CODE_OF:
        body = body_of(Refusal(reason, "text", retry_after_seconds=1.0))
        assert (body["error"]["reason"], body["error"]["retry_after_seconds"]) == (reason.value, 1.0)


async def _nothing(*_anything: Any) -> None:
    return None


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"host": "evil.example"}),
        ("GET", {"host": "127.0.0.1.evil.example:80"}),
        ("GET", {"host": ""}),
        ("GET", {}),
        ("POST", {"host": "localhost:1", "origin": "http://evil.example"}),
        ("POST", {"host": "localhost:1", "origin": "null"}),
        ("POST", {"host": "localhost:1", "origin": "http://localhost:2"}),
        ("POST", {"host": "localhost:1", "sec-fetch-site": "cross-site"}),
        ("POST", {"host": "localhost:1", "sec-fetch-site": "same-site"}),
    ],
)
def test_foreign_hosts_and_origins_are_turned_away(method: str, headers: dict[str, str]) -> None:
    with pytest.raises(Rejected) as caught:
        Guard(_nothing, served_names(""), 16_384).check(method, Headers(headers))
    assert caught.value.status == 403


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"host": "localhost:7461"}),
        ("GET", {"host": "127.0.0.1"}),
        ("GET", {"host": "[::1]:7461", "origin": "http://evil.example"}),
        ("POST", {"host": "LOCALHOST:1"}),
        ("POST", {"host": "127.0.0.1:1", "origin": "http://127.0.0.1:1", "sec-fetch-site": "same-origin"}),
        ("POST", {"host": "board.internal", "origin": "https://board.internal"}),
    ],
)
def test_our_own_pages_and_programs_come_in(method: str, headers: dict[str, str]) -> None:
    Guard(_nothing, served_names("board.internal, other"), 16_384).check(method, Headers(headers))


def test_no_inline_script_is_allowed() -> None:
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


def test_listening_beyond_loopback_is_refused() -> None:
    with pytest.raises(SystemExit, match="not a loopback address"):
        GatewaySettings(host="0.0.0.0").check_exposure()


def test_a_port_that_was_asked_for_is_had_or_refused_and_the_usual_one_gives_way() -> None:
    first = GatewayServer(GatewaySettings())
    second = GatewayServer(GatewaySettings())
    assert first.address != second.address
    taken = int(second.address.rpartition(":")[2])
    with pytest.raises(SystemExit, match="POINTSMAN_GATEWAY_PORT"):
        GatewayServer(GatewaySettings(port=taken))
    first.close()
    second.close()
