"""The daily log of routing decisions, in the words of its format: `memory/YYYY-MM-DD.md`."""

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


def log_entry(made: RoutingDecision, decided_at: datetime) -> str:
    """One decision, with the line break that ends it: what the rules said, and what became of it if somebody overrode it."""
    mode = decided_mode(made)
    lines = [f'{decided_at:%H:%M} ROUTE "{" ".join(made.excerpt.split())}" → {mode}']
    if mode is Mode.ACTION:
        noun = "trigger" if made.trigger_count == 1 else "triggers"
        lines.append(f"  Triggers: [{', '.join(trigger.name for trigger in made.triggers)}]")
        lines.append(f"  Confidence: {made.confidence} ({made.trigger_count} {noun})")
    else:
        lines.append("  Triggers: []")
        lines.append(f"  Pattern: {_TALK.get(made.rules[0].rpartition('.')[2], 'Statement')} + no external refs")
    if made.overridden:
        lines.append(f"  Overridden: {made.mode}")
    lines.append(f"  Routed to: {ROUTE_NAMES[made.route]}")
    return "\n".join(lines) + "\n"
