"""How much happens in a seed."""

from enum import Enum, auto


class Scope(Enum):
    """A few seeds live through whole runs; most are short, so that there are many of them."""

    WHOLE = auto()
    """Runs, until each of them has ended by itself."""
    CUT = auto()
    """One run, which is cancelled at some moment."""
    DIRECT = auto()
    """Plans, pipelines and decisions without a run."""

    @classmethod
    def of(cls, seed: int) -> "Scope":
        """Of 32 one is whole, nine are cut, 22 direct."""
        place = seed % 32
        return cls.WHOLE if place == 0 else cls.CUT if place < 10 else cls.DIRECT
