"""Decodes and encodes runs, with a cache of those that were written or read last."""

import threading

import msgspec

from pointsman.services.chassis.core.codec import from_json
from pointsman.services.orchestrator.domain.run import Run

REMEMBERED = 512
REMEMBERED_BYTES = 32 * 1024
_encoder = msgspec.json.Encoder()


class Bodies:
    """A cache of decoded runs by their JSON; cached runs are shared, so nobody changes one."""

    def __init__(self) -> None:
        self._runs: dict[bytes, Run] = {}
        self._changing = threading.Lock()

    def written(self, run: Run) -> msgspec.Raw:
        """The text of a run."""
        text = _encoder.encode(run)
        self._remember(text, run)
        return msgspec.Raw(text)

    def run(self, text: str | msgspec.Raw) -> Run:
        """The run of a text."""
        key = text.encode() if isinstance(text, str) else bytes(text)
        known = self._runs.get(key)
        if known is None:
            known = from_json(key.decode(), Run)
            self._remember(key, known)
        return known

    def _remember(self, text: bytes, run: Run) -> None:
        """Caches the newest runs; long ones are left out."""
        if len(text) > REMEMBERED_BYTES:
            return
        with self._changing:
            self._runs[text] = run
            if len(self._runs) > REMEMBERED:
                del self._runs[next(iter(self._runs))]
