"""Page tokens: what page_token made is read again; anything else is refused, whatever the types of its parts."""

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.paging import page_key, page_token


def test_a_token_gives_its_key_again_and_the_first_page_has_none() -> None:
    assert page_key(page_token(7, "run_1"), int, str) == (7, "run_1")
    assert page_key("", int, str) is None


@pytest.mark.parametrize(
    "token",
    [page_token("run_1", 7), page_token("7", "run_1"), page_token(7), page_token(7, "run_1", 1), "no token", "W10="],
)
def test_a_token_of_another_rpc_is_refused_by_name(token: str) -> None:
    with pytest.raises(Refusal) as caught:
        page_key(token, int, str)
    assert caught.value.reason is Reason.INVALID_PAGE_TOKEN
