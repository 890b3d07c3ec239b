"""Background loops of the router: none, because it has no peers and no timers."""

from collections.abc import Awaitable, Callable, Sequence

LOOPS: Sequence[tuple[str, Callable[[], Awaitable[None]]]] = ()
