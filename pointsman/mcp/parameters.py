"""What the tools take."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_MESSAGE = 65_536
MAX_WAIT_SECONDS = 50
RunId = Annotated[str, Field(min_length=1, max_length=128, description="The run's id.")]
RequestId = Annotated[
    str,
    Field(
        max_length=128,
        description="Idempotency key: the same key with the same arguments happens once, also after a crash.",
    ),
]


class Parameters(BaseModel):
    """Unknown arguments are refused."""

    model_config = ConfigDict(extra="forbid")


class Submit(Parameters):
    """Of submit_run and plan."""

    message: Annotated[
        str, Field(min_length=1, max_length=MAX_MESSAGE, description="What is wanted, in the user's words.")
    ]
    verify: Annotated[
        list[list[str]], Field(max_length=32, description="Commands that prove the work, each as its argument list.")
    ] = []
    accept: Annotated[list[str], Field(max_length=32, description="What must hold besides, in words.")] = []
    mode: Annotated[
        Literal["quality_gate", "phase", "step"], Field(description="When the work pauses for a person.")
    ] = "quality_gate"
    action: Annotated[bool, Field(description="Start a run even if the router would only answer.")] = False
    session_id: Annotated[str, Field(max_length=128, description="Runs of one session conflict; empty: its own.")] = ""
    repository: Annotated[
        str, Field(max_length=128, description="A repository of list_repositories by name, instead of the clone here.")
    ] = ""
    repository_id: Annotated[str, Field(max_length=128, description="Only without a local clone: the root commit.")] = (
        ""
    )
    base_commit: Annotated[
        str, Field(pattern="^([0-9a-f]{40}|[0-9a-f]{64})?$", description="Only without a local clone: where to start.")
    ] = ""
    request_id: RequestId = ""


class Nothing(Parameters):
    """Of tools that need to know nothing."""


class OfRun(Parameters):
    """Of tools that only need to know the run."""

    run_id: RunId


class GetRun(OfRun):
    """Of get_run."""

    wait_seconds: Annotated[
        int,
        Field(ge=0, le=MAX_WAIT_SECONDS, description="Wait so long for the run to ask, to end or to change its state."),
    ] = 0


class ListRuns(Parameters):
    """Of list_runs."""

    waiting: Annotated[bool, Field(description="Only runs that wait for a person.")] = False
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    page: Annotated[str, Field(max_length=1024, description="`next_page` of the answer before.")] = ""


class Answer(OfRun):
    """Of answer."""

    answer: Annotated[
        str, Field(max_length=64, description="One of the question's answers; empty asks the person (elicitation).")
    ] = ""
    question_id: Annotated[str, Field(max_length=128, description="The question; empty: the open one.")] = ""
    text: Annotated[str, Field(max_length=MAX_MESSAGE, description="The words that go with it.")] = ""
    task_id: Annotated[str, Field(max_length=128)] = ""
    stage: Annotated[str, Field(max_length=128)] = ""
    assignments: Annotated[int, Field(ge=0, le=100_000, description="With raise: the new limit of assignments.")] = 0
    tokens: Annotated[int, Field(ge=0, description="With raise: the new limit of tokens.")] = 0
    minutes: Annotated[int, Field(ge=0, le=100_000, description="With raise: the new limit of minutes.")] = 0
    request_id: RequestId = ""


class ChangeRequirement(OfRun):
    """Of change_requirement."""

    message: Annotated[
        str, Field(min_length=1, max_length=MAX_MESSAGE, description="What is wanted in addition or instead.")
    ]
    request_id: RequestId = ""


class Cancel(OfRun):
    """Of cancel."""

    reason: Annotated[str, Field(max_length=1024)] = "cancelled by an MCP client"
    request_id: RequestId = ""


class OfTask(OfRun):
    """Of get_evidence and logs."""

    task_id: Annotated[str, Field(max_length=128, description="Only this task; empty: all.")] = ""


class Deliver(OfRun):
    """Of deliver."""

    branch: Annotated[str, Field(max_length=200, description="The branch; default: pointsman/RUN.")] = ""


class Trigger(Parameters):
    """Of trigger_schedule."""

    schedule_id: Annotated[str, Field(min_length=1, max_length=128, description="The schedule's id.")]
    request_id: RequestId = ""


class Route(Parameters):
    """Of route."""

    message: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE)]
