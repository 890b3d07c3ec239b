"""How a message is read by the rules that come with the router."""

from pointsman.services.router.domain.classify import classify
from pointsman.services.router.domain.values import Mode
from pointsman.services.router.rules import standard_rule_book


def mode(text: str) -> Mode:
    """What the message asks for."""
    return classify(standard_rule_book(), text).mode
