"""The JSON body of a request; what is wrong with it becomes a refusal."""

from typing import Any

from pointsman._shared.strict_json import JsonError, MalformedJson
from pointsman._shared.strict_json import decode as decode_json
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field


def read_json(text: bytes, method: str) -> Any:
    """The value that the text holds, or a refusal that says what is wrong with it and where."""
    try:
        return decode_json(text)
    except MalformedJson as error:
        raise Refusal(Reason.MALFORMED_MESSAGE, f"the body {error.problem}", metadata={"method": method}) from None
    except JsonError as error:
        raise invalid_field(error.path, error.problem) from None
