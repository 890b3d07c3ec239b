"""Pages of lists: their keys checked, their items cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pointsman.api.common.v1 import common_pb2
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.paging import page_key, page_size

Item = TypeVar("Item")
Key = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Cut(Generic[Item]):
    """The items of one page, and whether more follow."""

    items: Sequence[Item]
    more: bool


def size_of(page: common_pb2.Page, most: int) -> int:
    """How many items the page holds."""
    return min(page_size(page), most)


def after(page: common_pb2.Page, shape: Sequence[type]) -> Key:
    """The key after which the page begins; empty for the first page."""
    key = page_key(page.page_token, len(shape)) or ()
    if key and [type(part) for part in key] != list(shape):
        raise Refusal(
            Reason.INVALID_PAGE_TOKEN,
            "page_token: take it from an answer of this RPC",
            metadata={"field": "page.page_token"},
        )
    return key


def position(page: common_pb2.Page) -> int:
    """The position after which a page of tasks begins."""
    return next((part for part in after(page, (int,)) if isinstance(part, int)), 0)


def cut(items: Sequence[Item], size: int) -> Cut[Item]:
    """The page's items, out of one more than it holds."""
    return Cut(items[:size], len(items) > size)
