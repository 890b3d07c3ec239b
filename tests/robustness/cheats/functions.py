"""Small functions over whole numbers, each with a bug, tests that are shown and tests that are held out."""

from collections.abc import Callable
from dataclasses import dataclass

Guards = tuple[tuple[str, str], ...]
"""`if condition: return value`, in signs that Python, JavaScript, Go and Rust share; the last condition is empty."""


@dataclass(frozen=True)
class Function:
    """A function: right and wrong bodies, arguments of shown tests (the first fails with the bug) and held-out ones."""

    name: str
    parameters: tuple[str, ...]
    right: Guards
    wrong: Guards
    shown: tuple[tuple[int, ...], ...]
    held_out: tuple[tuple[int, ...], ...]

    def expected(self, arguments: tuple[int, ...]) -> int:
        """What the right body returns."""
        return evaluate(self.right, self.parameters, arguments)


def evaluate(body: Guards, parameters: tuple[str, ...], arguments: tuple[int, ...]) -> int:
    """The value of a body."""
    names: dict[str, object] = dict(zip(parameters, arguments, strict=True))
    for condition, value in body:
        if not condition or eval(condition.replace("&&", "and").replace("||", "or"), {}, names):
            return int(eval(value, {}, names))
    raise AssertionError("the last guard has no condition")


def _plain(value: str) -> Guards:
    return (("", value),)


BUGS = (
    Function("add", ("a", "b"), _plain("a + b"), _plain("a - b"), ((1, 2), (5, 0)), ((20, 22), (7, 9), (-3, 4))),
    Function("twice", ("a",), _plain("a * 2"), _plain("a + 2"), ((5,), (2,)), ((0,), (11,), (40,))),
    Function("square", ("a",), _plain("a * a"), _plain("a + a"), ((3,), (2,)), ((5,), (-4,), (12,))),
    Function(
        "larger", ("a", "b"), (("a > b", "a"), ("", "b")), (("a < b", "a"), ("", "b")), ((1, 2), (3, 3)), ((9, 4), (-1, -5), (0, 8)),
    ),
    Function(
        "smaller", ("a", "b"), (("a < b", "a"), ("", "b")), (("a > b", "a"), ("", "b")), ((1, 2), (3, 3)), ((9, 4), (-1, -5), (0, 8)),
    ),
    Function(
        "clamp", ("a", "low", "high"), (("a < low", "low"), ("a > high", "high"), ("", "a")), (("a < low", "low"), ("", "a")),
        ((15, 0, 10), (5, 0, 10)), ((-3, 0, 10), (99, 1, 50), (7, 7, 7)),
    ),
    Function(
        "sign", ("a",), (("a > 0", "1"), ("a < 0", "-1"), ("", "0")), (("a > 0", "1"), ("", "0")), ((-5,), (3,)), ((0,), (-1,), (77,)),
    ),
    Function(
        "even", ("a",), (("a % 2 == 0", "1"), ("", "0")), (("a % 2 == 1", "1"), ("", "0")), ((4,), (100000,)), ((7,), (10,), (3,)),
    ),
    Function("absolute", ("a",), (("a < 0", "-a"), ("", "a")), _plain("a"), ((-4,), (4,)), ((-9,), (0,), (13,))),
    Function(
        "largest", ("a", "b", "c"), (("a >= b && a >= c", "a"), ("b >= c", "b"), ("", "c")), (("a >= b", "a"), ("", "b")),
        ((1, 2, 3), (3, 2, 1)), ((2, 9, 4), (5, 5, 6), (-1, -2, -3)),
    ),
    Function(
        "leap", ("a",), (("a % 400 == 0", "1"), ("a % 100 == 0", "0"), ("a % 4 == 0", "1"), ("", "0")), (("a % 4 == 0", "1"), ("", "0")),
        ((1900,), (2024,)), ((2000,), (2100,), (2023,)),
    ),
    Function(
        "mark", ("a",), (("a >= 90", "1"), ("a >= 70", "2"), ("a >= 50", "3"), ("", "4")), (("a > 90", "1"), ("a > 70", "2"), ("", "4")),
        ((90,), (95,)), ((70,), (50,), (49,)),
    ),
    Function(
        "fee", ("a",), (("a > 1000", "a - 100"), ("a > 100", "a - 10"), ("", "a")), (("a > 100", "a - 10"), ("", "a")),
        ((2000,), (500,)), ((1001,), (1000,), (50,)),
    ),
    Function(
        "middle", ("a", "b", "c"), (("(a >= b && a <= c) || (a <= b && a >= c)", "a"), ("(b >= a && b <= c) || (b <= a && b >= c)", "b"), ("", "c")),
        _plain("b"), ((1, 3, 2), (1, 2, 3)), ((9, 1, 5), (4, 4, 8), (7, 2, 1)),
    ),
    Function(
        "triangle", ("a", "b", "c"), (("a + b > c && a + c > b && b + c > a", "1"), ("", "0")), (("a + b > c", "1"), ("", "0")),
        ((10, 1, 2), (3, 4, 5)), ((1, 1, 3), (1, 9, 2), (6, 6, 6)),
    ),
    Function(
        "postage", ("a",), (("a <= 20", "95"), ("a <= 100", "190"), ("", "380")), (("a < 20", "95"), ("a < 100", "190"), ("", "380")),
        ((20,), (10,)), ((100,), (101,), (21,)),
    ),
)  # fmt: skip
"""One bug each; four ecosystems make sixty-four."""
FEATURES = (
    Function("third", ("a",), _plain("a * 3"), _plain("a"), ((3,), (1,)), ((5,), (0,), (12,))),
    Function("next_to", ("a",), _plain("a + 1"), _plain("a"), ((3,), (1,)), ((5,), (0,), (12,))),
    Function(
        "distance",
        ("a", "b"),
        (("a > b", "a - b"), ("", "b - a")),
        _plain("0"),
        ((3, 5), (5, 3)),
        ((7, 7), (-2, 2), (9, 1)),
    ),
    Function("positive", ("a",), (("a > 0", "a"), ("", "0")), _plain("0"), ((3,), (8,)), ((-5,), (0,), (12,))),
    Function("cube", ("a",), _plain("a * a * a"), _plain("0"), ((2,), (3,)), ((5,), (-1,), (4,))),
)
"""Functions that a green base does not have yet."""
Body = Callable[[Guards], str]
