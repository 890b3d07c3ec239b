"""The API reference has every service, RPC, message, field and value of the contract, with comments and limits."""

from collections.abc import Iterator

import pytest

from tests.contract.wire_samples import enums, messages, services
from tests.helpers.scripts import script

PACKAGE = "pointsman.api."


@pytest.fixture(scope="module")
def pages() -> Iterator[dict[str, str]]:
    with script("protos/reference.py") as module:
        yield module.Reference(module.descriptors()).pages()


def page_of(pages: dict[str, str], full_name: str) -> str:
    return pages[full_name.removeprefix(PACKAGE).partition(".")[0]]


def test_every_rpc_is_there_with_its_messages_and_its_least_role(pages: dict[str, str]) -> None:
    for service in services():
        for method in service.methods:
            page = page_of(pages, service.full_name)
            assert f"### {service.name}.{method.name}\n" in page
    poll = pages["orchestrator"].partition("### AgentService.Poll\n")[2].partition("###")[0]
    assert "- takes [PollRequest](orchestrator.md#orchestrator-v1-pollrequest)" in poll
    assert "- least role: `ROLE_AGENT`" in poll


def test_every_field_of_every_message_and_every_value_is_there(pages: dict[str, str]) -> None:
    for message in messages():
        if message.GetOptions().map_entry:
            continue
        _, found, section = page_of(pages, message.full_name).partition(f"## {message.name} {{ #")
        assert found, message.full_name
        for field in message.fields:
            assert f"| `{field.name}` = {field.number} | " in section.partition("\n## ")[0], field.full_name
    for enum in enums():
        for value in enum.values:
            assert f"| `{value.name}` | {value.number} | " in page_of(pages, enum.full_name), value.name


def test_limits_and_comments_stand_beside_the_fields(pages: dict[str, str]) -> None:
    section = pages["orchestrator"].partition("## PollRequest {")[2].partition("\n## ")[0]
    assert "| string | The agent; one id per role" in section
    assert "`string { min_len: 1 max_len: 128 }` |" in section
