"""Settings from the environment: typing errors are named, secrets are not."""

from pathlib import Path

import pytest

from pointsman.cli.session.worker_settings import WorkerSettings
from pointsman.services.chassis.core.config import (
    ClientSettings,
    PeerSettings,
    RequestSettings,
    ServerSettings,
    StoreSettings,
    TelemetrySettings,
    describe,
    exit_with,
    is_loopback,
    load,
)
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.core.settings import Settings
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.router.config import RouterSettings
from pointsman.services.workflow.config import WorkflowSettings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_SERVER_PORT", "7777")
    assert load(ServerSettings).port == 7777
    assert load(ServerSettings, port=1).port == 1


def test_an_unknown_name_is_refused_with_the_one_that_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_SERVER_PROT", "7777")
    with pytest.raises(Refusal, match=r"POINTSMAN_SERVER_PROT.*did you mean POINTSMAN_SERVER_PORT"):
        load(ServerSettings)


def test_an_unknown_name_like_no_other_is_refused_with_all_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_SERVER_XYZZY", "1")
    with pytest.raises(Refusal, match=r"POINTSMAN_SERVER_XYZZY.*known: .*POINTSMAN_SERVER_HOST"):
        load(ServerSettings)


def test_a_shared_name_that_is_nearly_right_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_DATABSE_URL", "postgresql://somewhere/db")
    with pytest.raises(Refusal, match=r"POINTSMAN_DATABSE_URL.*did you mean POINTSMAN_DATABASE_URL"):
        load(StoreSettings)


def test_a_name_of_another_service_is_left_to_that_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_ROUTER_DATA", "1")
    monkeypatch.setenv("POINTSMAN_SERVER_PORT", "1")
    assert load(StoreSettings).database_url == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "70000"),
        ("PORT", "many"),
        ("REFLECTION", "perhaps"),
        ("MAX_MESSAGE_BYTES", "1"),
        ("DEADLINE_CAP_SECONDS", "0"),
    ],
)
def test_a_bad_value_names_its_variable(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"POINTSMAN_SERVER_{name}", value)
    with pytest.raises(Refusal) as refused:
        load(ServerSettings)
    assert [violation.field for violation in refused.value.violations] == [f"POINTSMAN_SERVER_{name}"]
    assert f"POINTSMAN_SERVER_{name}" in str(exit_with(refused.value))


@pytest.mark.parametrize("settings_class", [
    ServerSettings, StoreSettings, PeerSettings, ClientSettings, TelemetrySettings, RequestSettings, GatewaySettings,
    RouterSettings, WorkflowSettings, PipelineSettings, OrchestratorSettings, MockSettings, WorkerSettings,
])  # fmt: skip
def test_every_setting_can_be_set_to_its_default(
    settings_class: type[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in settings_class.fields:
        default = getattr(settings_class, name)
        if default is not None:
            monkeypatch.setenv(settings_class.variables(name)[0], str(default))
    assert describe(load(settings_class)) == describe(settings_class())


def test_a_setting_without_a_default_takes_a_value_within_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_PIPELINE_BARRIER_TIMEOUT_SECONDS", "77")
    assert load(PipelineSettings).barrier_timeout_seconds == 77
    monkeypatch.setenv("POINTSMAN_PIPELINE_BARRIER_TIMEOUT_SECONDS", "0")
    with pytest.raises(Refusal, match="BARRIER_TIMEOUT_SECONDS"):
        load(PipelineSettings)


@pytest.mark.parametrize("name", ["POINTSMAN_ROUTER_HARD_ROUTING", "ENABLE_HARD_ROUTING"])
def test_a_bad_value_of_a_setting_with_two_names_names_the_one_that_was_used(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "perhaps")
    with pytest.raises(Refusal) as refused:
        load(RouterSettings)
    assert [violation.field for violation in refused.value.violations] == [name]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@db.example/pointsman",
        "postgresql://:s3cret@db.example/pointsman",
        "postgresql://ann:p@s3cret@db.example/pointsman",
        "postgresql://ann@db.example/pointsman?password=s3cret&sslmode=require",
        "postgresql://ann@/pointsman?host=/tmp&password=s3cret",
    ],
)
def test_passwords_are_masked(url: str) -> None:
    shown = describe(StoreSettings(database_url=url))["database_url"]
    assert "s3cret" not in shown
    assert shown.startswith("postgresql://")
    assert "pointsman" in shown


def test_what_is_no_secret_is_shown() -> None:
    url = "postgresql://ann@db.example/pointsman?sslmode=require"
    shown = describe(StoreSettings(data=Path("/data"), database_url=url))
    assert shown == {"data": "/data", "database_url": url, "database_features": "auto"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_may_be_listened_on(host: str) -> None:
    assert is_loopback(host)
    ServerSettings(host=host).check_exposure()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", "localhost.example.com", ""])
def test_elsewhere_is_refused_without_tls_and_authentication(host: str) -> None:
    with pytest.raises(SystemExit, match="POINTSMAN_SERVER_HOST"):
        ServerSettings(host=host).check_exposure()


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert ServerSettings(host="::1", port=7460).address == "[::1]:7460"
    assert ServerSettings(port=7460).address == "127.0.0.1:7460"


def test_settings_cannot_be_changed_afterwards() -> None:
    settings = ServerSettings()
    with pytest.raises(AttributeError, match="frozen"):
        settings.port = 1  # type: ignore[misc]


def test_each_context_has_its_own_file_or_one_server_for_all() -> None:
    assert StoreSettings(data=Path("/data")).url_for("router") == "sqlite:////data/router.db"
    assert StoreSettings(database_url="postgresql://db/x").url_for("router") == "postgresql://db/x"
