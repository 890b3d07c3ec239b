"""What became of many calls."""

import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import grpc

from pointsman.services.chassis.rpc.status import refusal_from


@dataclass(slots=True)
class Tally:
    """What a stretch of time has brought."""

    codes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    refused_seconds: list[float] = field(default_factory=list)
    without_retry_info: int = 0
    seen: dict[str, str] = field(default_factory=dict)
    """The text of the first answer with each code."""

    @property
    def p99_ms(self) -> float:
        """How long the slowest hundredth of the good answers took, in milliseconds."""
        ordered = sorted(self.seconds) or [0.0]
        return round(ordered[int(len(ordered) * 0.99) - 1] * 1000, 1)

    @property
    def refused_p50_ms(self) -> float:
        """How long a refusal took, in milliseconds."""
        return round(median(self.refused_seconds or [0.0]) * 1000, 1)

    async def take(self, call: Any) -> bool:
        """Wait for one call, and count it; whether it was done."""
        begun = time.monotonic()
        try:
            await call
        except grpc.aio.AioRpcError as error:
            self.codes[error.code().name] += 1
            self.seen.setdefault(error.code().name, str(error.details()))
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                self.refused_seconds.append(time.monotonic() - begun)
                self.without_retry_info += refusal_from(error).retry_after_seconds is None
            return False
        self.codes["OK"] += 1
        self.seconds.append(time.monotonic() - begun)
        return True
