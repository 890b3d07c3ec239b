"""From a reported route to the effective one: repair its values, then enforce the policy."""

from typing import TypeVar

import msgspec
from msgspec.structs import replace

from pointsman.services.pipeline.domain.enums import (
    QUALITY,
    Correction,
    RouteSource,
    RouteTarget,
    Severity,
    StageKind,
    Verdict,
)

MAX_HINT_CHARACTERS = 200
MAX_CONTEXT_FILE_CHARACTERS = 1024
MAX_GROUP_CHARACTERS = 64

Member = TypeVar("Member", Verdict, RouteTarget, Severity)


class ReportedRoute(msgspec.Struct, frozen=True):
    """A route as the agent reported it: unchecked, but every field is bounded text or absent."""

    source: RouteSource
    verdict: str | None = None
    route: str | None = None
    severity: str | None = None
    context_file: str | None = None
    hint: str | None = None
    barrier_group: str | None = None
    nonce: str | None = None


def choose_route(reported: tuple[ReportedRoute, ...], nonce: str | None = None) -> ReportedRoute | None:
    """The first reported route; with a nonce, the first that carries it."""
    return next((route for route in reported if nonce is None or route.nonce == nonce), None)


class RouteWarning(msgspec.Struct, frozen=True):
    """One correction: a code for programs, a text for people."""

    code: Correction
    text: str


class EffectiveRoute(msgspec.Struct, frozen=True):
    """The route that the pipeline takes. The severity is set if and only if the verdict is FAIL."""

    verdict: Verdict
    route: RouteTarget
    severity: Severity | None = None
    context_file: str = ""
    hint: str = ""
    barrier_group: str = ""
    source: RouteSource = RouteSource.TYPED
    warnings: tuple[RouteWarning, ...] = ()
    degraded: bool = False

    def corrected(self, code: Correction, text: str, route: RouteTarget | None = None) -> "EffectiveRoute":
        """The same with one more warning, and possibly another target."""
        return replace(self, route=route or self.route, warnings=(*self.warnings, RouteWarning(code, text)))

    def was(self, code: Correction) -> bool:
        """Whether this correction was made."""
        return any(warning.code is code for warning in self.warnings)


class Position(msgspec.Struct, frozen=True):
    """The properties of the reporting stage that the policy needs."""

    kind: StageKind
    has_next: bool
    returns_to: str | None
    """The stage that a FAIL returns to; the stage's own id if it can only be repeated."""
    on_fail: str | None
    has_dev: bool
    barrier: str | None
    retries: int
    max_retries: int


def repair(reported: ReportedRoute, kind: StageKind) -> EffectiveRoute:
    """Layer 1, values: an unknown value becomes the default, with a warning."""
    verdict = _member(Verdict, reported.verdict)
    route = _member(RouteTarget, reported.route)
    severity = _member(Severity, reported.severity)
    counted = verdict or Verdict.PASS
    default = RouteTarget.NEXT if counted is Verdict.PASS else RouteTarget.DEV
    result = EffectiveRoute(
        counted, route or default, source=reported.source, degraded=verdict is None and kind in QUALITY
    )
    if reported.source is RouteSource.OLD_VERDICT:
        result = result.corrected(Correction.OLD_VERDICT, "PIPELINE_VERDICT is old; write PIPELINE_ROUTE")
    if verdict is None:
        result = result.corrected(Correction.VERDICT_REPAIRED, "the verdict is neither PASS nor FAIL; taken as PASS")
    if route is None and reported.source is RouteSource.MARKER:
        result = result.corrected(Correction.ROUTE_REPAIRED, f"the route is not one; taken as {default}")
    return _with_texts(_with_severity(result, severity), reported)


def _member(enum: type[Member], text: str | None) -> Member | None:
    """The member of this name in any case; look-alike letters of other scripts do not match."""
    if isinstance(text, enum):
        return text
    name = (text or "").strip(" \t\r\n")
    name = name.upper() if name.isascii() else name
    return enum[name] if name in enum.__members__ else None


def _with_severity(route: EffectiveRoute, severity: Severity | None) -> EffectiveRoute:
    if route.verdict is Verdict.PASS:
        return route
    if severity is None:
        text = "a FAIL needs a severity; taken as MEDIUM"
        return replace(route, severity=Severity.MEDIUM).corrected(Correction.SEVERITY_REPAIRED, text)
    return replace(route, severity=severity)


def _with_texts(route: EffectiveRoute, reported: ReportedRoute) -> EffectiveRoute:
    hint = " ".join((reported.hint or "").split())
    context_file = reported.context_file or ""
    group = reported.barrier_group or ""
    if len(hint) > MAX_HINT_CHARACTERS:
        route = route.corrected(Correction.HINT_CUT, f"the hint was cut to {MAX_HINT_CHARACTERS} characters")
        hint = hint[:MAX_HINT_CHARACTERS]
    if len(context_file) > MAX_CONTEXT_FILE_CHARACTERS:
        route = route.corrected(Correction.CONTEXT_FILE_DROPPED, "the name of the context file is too long")
        context_file = ""
    if len(group) > MAX_GROUP_CHARACTERS:
        route = route.corrected(Correction.BARRIER_GROUP_DROPPED, "the name of the barrier is too long")
        group = ""
    if not (hint or context_file or group):
        return route
    return replace(route, hint=hint, context_file=context_file, barrier_group=group)


def enforce(route: EffectiveRoute, position: Position) -> EffectiveRoute:
    """Layer 2, policy: the target that the pipeline takes, whatever the agent asked for."""
    if route.route is RouteTarget.ABORT:
        return route
    for step in (
        _pass_goes_on,
        _fail_goes_back,
        _complete_at_the_end,
        _barrier_exists,
        _return_is_possible,
        _member_waits,
    ):
        route = step(route, position)
    if route.route is RouteTarget.BARRIER or not route.barrier_group:
        return route
    return replace(route, barrier_group="")


def enforce_anywhere(route: EffectiveRoute) -> EffectiveRoute:
    """The part of the policy that needs no position: PASS never returns, FAIL never advances."""
    if route.verdict is Verdict.FAIL and route.route in {RouteTarget.NEXT, RouteTarget.COMPLETE}:
        return route.corrected(Correction.FAIL_CANNOT_GO_ON, "FAIL cannot go on; back to DEV", RouteTarget.DEV)
    return _pass_goes_on(route)


def _pass_goes_on(route: EffectiveRoute, _position: Position | None = None) -> EffectiveRoute:
    if route.verdict is Verdict.PASS and route.route is RouteTarget.DEV:
        return route.corrected(Correction.PASS_CANNOT_RETURN, "PASS cannot go back to DEV", RouteTarget.NEXT)
    return route


def _fail_goes_back(route: EffectiveRoute, position: Position) -> EffectiveRoute:
    asks_on = route.route in {RouteTarget.NEXT, RouteTarget.COMPLETE}
    asks_barrier = route.route is RouteTarget.BARRIER and position.barrier is None
    if route.verdict is Verdict.PASS or not (asks_on or asks_barrier):
        return route
    if asks_barrier:
        route = route.corrected(Correction.NO_SUCH_BARRIER, "the stage is no member of a barrier")
    if position.on_fail is None:
        return route.corrected(Correction.FORCED_ON, "FAIL with nowhere to go back to", RouteTarget.NEXT)
    return route.corrected(
        Correction.FAIL_CANNOT_GO_ON, f"FAIL cannot go on; back to {position.on_fail}", RouteTarget.DEV
    )


def _complete_at_the_end(route: EffectiveRoute, position: Position) -> EffectiveRoute:
    if route.route is RouteTarget.COMPLETE and position.has_next:
        text = "COMPLETE counts only at the last stage"
        return route.corrected(Correction.COMPLETE_BEFORE_THE_END, text, RouteTarget.NEXT)
    return route


def _barrier_exists(route: EffectiveRoute, position: Position) -> EffectiveRoute:
    if route.route is RouteTarget.BARRIER and position.barrier is None:
        return route.corrected(Correction.NO_SUCH_BARRIER, "the stage is no member of a barrier", RouteTarget.NEXT)
    return route


def _return_is_possible(route: EffectiveRoute, position: Position) -> EffectiveRoute:
    if route.route is not RouteTarget.DEV:
        return route
    if position.returns_to is None and not position.has_dev:
        return route.corrected(Correction.NO_DEV_STAGE, "there is no DEV stage to go back to", RouteTarget.NEXT)
    if position.returns_to is None:
        return route.corrected(Correction.FORCED_ON, "FAIL with nowhere to go back to", RouteTarget.NEXT)
    if position.retries >= position.max_retries:
        text = f"{position.retries} of {position.max_retries} retries are used up"
        return route.corrected(Correction.RETRY_EXHAUSTED, text, RouteTarget.NEXT)
    if position.on_fail is None:
        return route.corrected(Correction.REPEATS_ITSELF, "there is no DEV before this stage; it repeats itself")
    return route


def _member_waits(route: EffectiveRoute, position: Position) -> EffectiveRoute:
    if position.barrier is None:
        return route
    route = replace(route, barrier_group=position.barrier)
    if route.route is RouteTarget.BARRIER:
        return route
    text = f"the stage is a member of barrier {position.barrier}"
    return route.corrected(Correction.BARRIER_MEMBER, text, RouteTarget.BARRIER)
