"""Background work of the router: none, since it calls nobody and waits for nothing but its callers."""

from collections.abc import Awaitable, Callable, Sequence

LOOPS: Sequence[tuple[str, Callable[[], Awaitable[None]]]] = ()
