"""Compresses response bodies for clients that accept it."""

import gzip

from starlette.requests import Request

BEST, FAST = 9, 1
"""For what is compressed once, and for each answer."""
WORTH_COMPRESSING = 1024
GZIP = {"Content-Encoding": "gzip"}
VARY = {"Vary": "Accept-Encoding"}


def compress(body: bytes, level: int) -> bytes:
    """A body as gzip, the same for the same body."""
    return gzip.compress(body, level, mtime=0)


def takes_gzip(request: Request) -> bool:
    """Whether the caller takes gzip; a weight of 0 says that it does not."""
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
