"""JSON text that says one thing only: no key twice, no NaN, no NUL, no half character, not too deep."""

import json
import re
from typing import Any

from pointsman.services.chassis.refusals import Reason, Refusal, invalid_field

MAX_DEPTH = 64
UNPRINTABLE = re.compile("[\0\ud800-\udfff]")


def read_json(text: bytes, method: str) -> Any:
    """The value that the text holds, or a refusal that says what is wrong with it and where."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError:
        raise _malformed("the body is not UTF-8", method) from None
    except json.JSONDecodeError as error:
        raise _malformed(f"the body is not JSON: {error.msg} at character {error.pos}", method) from None
    except RecursionError:
        raise _malformed("the body is nested too deeply", method) from None
    except ValueError:
        raise _malformed("the body holds a number that is too long", method) from None
    _check(value, "", 0)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise invalid_field(_printable(twice), "is given twice")
    return result


def _constant(name: str) -> Any:
    raise invalid_field("", f"{name} is not a JSON number")


def _check(value: Any, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise invalid_field(path[:256], f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str) and UNPRINTABLE.search(value):
        raise invalid_field(path, "must not contain NUL characters or halves of surrogate pairs")
    if isinstance(value, dict):
        for name, item in value.items():
            if UNPRINTABLE.search(name):
                raise invalid_field(f"{path}.{_printable(name)}".lstrip("."), "is not a name")
            _check(item, f"{path}.{name}" if path else name, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth + 1)


def _printable(name: str) -> str:
    return UNPRINTABLE.sub("\ufffd", name)[:256]


def _malformed(text: str, method: str) -> Refusal:
    return Refusal(Reason.MALFORMED_MESSAGE, text, metadata={"method": method})
