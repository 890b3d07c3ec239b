"""Writes entries of the daily log of routing decisions (`memory/YYYY-MM-DD.md`)."""

from datetime import datetime

from pointsman.services.router.domain.decision_record import RoutingDecision, decided_mode
from pointsman.services.router.domain.enums import Mode, RouteTarget

ROUTE_NAMES = {
    RouteTarget.DIRECT_RESPONSE: "Direct Response",
    RouteTarget.SWARM_ORCHESTRATOR: "Swarm Orchestrator",
    RouteTarget.TOOL_SPECIALIST: "Tool Specialist",
}
_TALK = {
    "question": "Question",
    "request": "Request",
    "acknowledgement": "Acknowledgement",
    "thanks": "Acknowledgement",
    "marker": "System-generated",
}


def log_entry(decision: RoutingDecision, decided_at: datetime) -> str:
    """The log entry of one decision, with its final line break; an override is shown beside the rules' mode."""
    mode = decided_mode(decision)
    lines = [f'{decided_at:%H:%M} ROUTE "{" ".join(decision.excerpt.split())}" → {mode}']
    if mode is Mode.ACTION:
        noun = "trigger" if decision.trigger_count == 1 else "triggers"
        lines.append(f"  Triggers: [{', '.join(trigger.name for trigger in decision.triggers)}]")
        lines.append(f"  Confidence: {decision.confidence} ({decision.trigger_count} {noun})")
    else:
        lines.append("  Triggers: []")
        lines.append(f"  Pattern: {_TALK.get(decision.rules[0].rpartition('.')[2], 'Statement')} + no external refs")
    if decision.overridden:
        lines.append(f"  Overridden: {decision.mode}")
    lines.append(f"  Routed to: {ROUTE_NAMES[decision.route]}")
    return "\n".join(lines) + "\n"
