"""The words in which a routing decision is told."""

from enum import StrEnum
from typing import NamedTuple


class Mode(StrEnum):
    """Whether a message can be answered directly or needs work done."""

    ANSWER = "ANSWER"
    ACTION = "ACTION"


class Confidence(StrEnum):
    """How many distinct triggers speak for ACTION."""

    NONE = "NONE"
    WEAK = "WEAK"
    STRONG = "STRONG"


class RouteTarget(StrEnum):
    """Who takes the message."""

    DIRECT_RESPONSE = "direct_response"
    SWARM_ORCHESTRATOR = "swarm_orchestrator"
    TOOL_SPECIALIST = "tool_specialist"


class Debate(StrEnum):
    """Whether advocate and critic argue before the work starts."""

    NONE = "none"
    PLANNING = "planning"


class Stakes(StrEnum):
    """What is at stake if the task goes wrong."""

    NONE = "none"
    MEDIUM = "medium"
    HIGH = "high"


class Bypass(StrEnum):
    """Why no debate is held, in order of precedence."""

    USER_OVERRIDE = "user_override"
    TRIVIAL = "trivial"
    READ_ONLY = "read_only"
    ALREADY_DEBATED = "already_debated"


class TriggerKind(StrEnum):
    """What kind of evidence a trigger is."""

    KEYWORD = "keyword"
    PATH = "path"
    URL = "url"
    HOST = "host"
    CODE_BLOCK = "code_block"
    CODE_INDICATOR = "code_indicator"
    OWN_RULE = "own_rule"


class PlanningTrigger(StrEnum):
    """Why a message starts a planning debate."""

    DESTRUCTIVE = "destructive"
    DEPLOYMENT = "deployment"
    SECURITY = "security"
    BULK = "bulk"
    AMBIGUOUS_SCOPE = "ambiguous_scope"
    OWN_RULE = "own_rule"


class Trigger(NamedTuple):
    """One piece of evidence and where it first stands in the text, in code points."""

    kind: TriggerKind
    name: str
    rule: str
    start: int
    end: int


class DebateReason(NamedTuple):
    """One reason to debate and where it stands; start equals end where nothing in the text stands for it."""

    trigger: PlanningTrigger
    rule: str
    start: int
    end: int


class Classification(NamedTuple):
    """What the rules say about one message."""

    mode: Mode
    confidence: Confidence
    triggers: tuple[Trigger, ...]
    route: RouteTarget
    fast_path: bool
    debate: Debate
    stakes: Stakes
    bypass: Bypass | None
    reasons: tuple[DebateReason, ...]
    rules: tuple[str, ...]
    rule_set_version: str
