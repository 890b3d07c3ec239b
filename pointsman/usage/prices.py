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


def cost_micros(model: str, input_tokens: int, output_tokens: int, undivided_tokens: int = 0) -> int | None:
    """What tokens of a model cost at the most, in millionths of a dollar; undivided ones at the dearer of the two prices."""
    price = price_of(model)
    if price is None:
        return None
    dearer = max(price.input, price.output)
    return round(input_tokens * price.input + output_tokens * price.output + undivided_tokens * dearer)
