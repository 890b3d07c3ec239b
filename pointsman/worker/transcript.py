"""What an agent's command prints: secrets masked, its end ready to be sent, the whole bounded in size."""

import asyncio
import codecs
from collections.abc import Iterable, Iterator

from pointsman._shared.redaction import MASK, redact

MAX_PIECE_BYTES = 16_384
MAX_PIECES = 4
MAX_HEAD, MAX_TAIL = 262_144, 786_432
"""How many characters remain of the beginning and of the end of a long output."""
MAX_LINE, HELD_BACK = 8192, 512
"""How long a line may become before it is sent without its end; the last of it may be half a secret and waits."""
MAX_KEY = 16_384
_KEY_BEGINS, _KEY_ENDS = "-----BEGIN ", "-----END "
MIN_SECRET = 6


class Transcript:
    """The output of one assignment. Lines are masked whole, since a secret in two pieces would not be recognised."""

    def __init__(self) -> None:
        self.sending = asyncio.Lock()
        """Held while pieces are on their way, so that they arrive in order."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._secrets: list[str] = []
        self._pending = ""
        self._unsent = ""
        self._head, self._tail = "", ""
        self._length = 0

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these values wherever they are printed."""
        self._secrets += sorted((one for one in secrets if len(one) >= MIN_SECRET), key=len, reverse=True)

    def write(self, chunk: bytes) -> None:
        """Takes what was printed."""
        self._pending += self._decoder.decode(chunk)
        self._release(self._whole_lines())

    def close(self) -> None:
        """Takes what is left as the end of the output."""
        self._pending += self._decoder.decode(b"", final=True)
        self._release(len(self._pending))

    @property
    def has_unsent(self) -> bool:
        """Whether there is something to send."""
        return bool(self._unsent)

    def take(self) -> list[tuple[int, str]]:
        """What was not sent yet, in pieces with their offsets; of more than can be sent at once, the end."""
        unsent, self._unsent = self._unsent, ""
        pieces = list(_pieces(unsent))[-MAX_PIECES:]
        offset, found = self._length - sum(map(len, pieces)), []
        for piece in pieces:
            found.append((offset, piece))
            offset += len(piece)
        return found

    def body(self) -> bytes:
        """The whole output; where it was too long, its beginning and its end, with a line that says what is missing."""
        missing = self._length - len(self._head) - len(self._tail)
        gap = f"\n[… {missing} characters are left out …]\n" if missing else ""
        return f"{self._head}{gap}{self._tail}".encode()

    def _whole_lines(self) -> int:
        """How much of what is pending can be masked for good."""
        pending = self._pending
        end = pending.rfind("\n") + 1
        if not end and len(pending) > MAX_LINE:
            end = len(pending) - HELD_BACK
        begun = pending.rfind(_KEY_BEGINS, 0, end)
        is_open = begun >= 0 and _KEY_ENDS not in pending[begun:end]
        return begun if is_open and len(pending) - begun <= MAX_KEY else end

    def _release(self, end: int) -> None:
        text = self._masked(self._pending[:end]).replace("\0", "")
        self._pending = self._pending[end:]
        room = MAX_HEAD - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-MAX_TAIL:] if room < len(text) else self._tail
        self._unsent = (self._unsent + text)[-MAX_PIECES * MAX_PIECE_BYTES :]
        self._length += len(text)

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return redact(text)


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that a message has room for."""
    while text:
        piece = text[:MAX_PIECE_BYTES].encode()[:MAX_PIECE_BYTES].decode(errors="ignore")
        yield piece
        text = text[len(piece) :]
