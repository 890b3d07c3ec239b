"""How a message is read by the rules that come with the router."""

from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.enums import Mode
from pointsman.services.router.domain.model import Classification
from pointsman.services.router.rules import standard_rule_book


def decide(text: str) -> Classification:
    """The whole decision."""
    return classify(standard_rule_book(), text)


def mode(text: str) -> Mode:
    """What the message asks for."""
    return decide(text).mode
