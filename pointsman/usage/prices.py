"""What tokens cost, by a dated list of prices; a model that is not on it has no price."""

import tomllib
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens, on a day."""

    match: str
    input: float
    output: float
    as_of: date


@cache
def prices() -> tuple[Price, ...]:
    """The list, the longest names first."""
    with (Path(__file__).parent / "prices.toml").open("rb") as file:
        listed = [Price(**one) for one in tomllib.load(file)["price"]]
    return tuple(sorted(listed, key=lambda price: -len(price.match)))


def price_of(model: str) -> Price | None:
    """The price of a model, whatever provider's name stands before it; None where nobody wrote it down."""
    name = model.lower().rpartition("/")[2]
    return next((price for price in prices() if name.startswith(price.match)), None)


def cost_micros(model: str, tokens: int) -> int | None:
    """What tokens of a model cost at the most, in millionths of a dollar: all at the dearer of its two prices."""
    price = price_of(model)
    return None if price is None else round(tokens * max(price.input, price.output))
