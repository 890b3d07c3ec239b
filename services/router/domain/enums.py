"""The closed vocabulary of routing decisions; the same names stand in the protos and in stored decisions."""

from enum import StrEnum


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
    """Which agent takes the message."""

    DIRECT_RESPONSE = "direct_response"
    SWARM_ORCHESTRATOR = "swarm_orchestrator"
    TOOL_SPECIALIST = "tool_specialist"


class Debate(StrEnum):
    """Whether advocate and critic argue before the work starts."""

    NONE = "none"
    PLANNING = "planning"


class Stakes(StrEnum):
    """How much harm the task could do."""

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
    """What a trigger consists of."""

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


class Doubt(StrEnum):
    """What happens to a message that no firm rule decides."""

    BALANCED = "balanced"
    ACTION = "action"
    ANSWER = "answer"
    RULES = "rules"
    """The rules alone decide; no word is weighed."""
