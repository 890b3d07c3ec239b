"""Texts without their secrets, whatever kind of text they are."""

from enum import StrEnum

import pytest

from pointsman._shared.redaction import MASK, redact
from pointsman.services.chassis.core.errors import state_forbids
from pointsman.services.chassis.rpc.status import status_of


class Colour(StrEnum):
    """A state as domains write them."""

    RED = "red"


@pytest.mark.parametrize("text", ["red", Colour.RED])
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert redact(text) == "red"


def test_a_secret_is_masked() -> None:
    assert redact("push with ghp_abcdefghijklmnopqrst0123") == f"push with {MASK}"


def test_a_refusal_whose_state_is_an_enum_has_a_status() -> None:
    status = status_of(state_forbids("pipeline", "p1", Colour.RED, (Colour.RED,), "not now"))
    assert status.message == "not now"
