"""The body of a pull request: open risks first, then a table of claims, evidence and results, then changed tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from pointsman.api.handoff.v1.delivery_pb2 import Delivery
from pointsman.api.handoff.v1.handoff_pb2 import Evidence, EvidenceKind
from pointsman.api.handoff.v1.proof_pb2 import Grade
from pointsman.api.handoff.v1.work_pb2 import ClaimStatus
from pointsman.api.orchestrator.v1.evidence_pb2 import Attempt
from pointsman.api.orchestrator.v1.landing_pb2 import Entry
from pointsman.proof.protection.rules import default_table
from pointsman.worker.commit_message import one_line, subject

MAX_ROWS, MAX_RISKS, MAX_TESTS = 60, 30, 40
MAX_CELL = 300
MAX_BODY = 60_000


@dataclass(frozen=True, slots=True)
class RequestContent:
    """What a pull request tells of a run."""

    entry: Entry
    delivery: Delivery = field(default_factory=Delivery)
    attempts: tuple[Attempt, ...] = ()
    trace: str = ""


def trace_of(run_id: str, traceparent: str, console: str) -> str:
    """Where the trace of a run is: in the console, if the project names one, and under which id elsewhere."""
    shown = f"[trace]({console.rstrip('/')}/runs/{quote(run_id, safe='')}#trace)" if console else "trace"
    parts = traceparent.split("-")
    named = f" `{parts[1]}`" if len(parts) == 4 and parts[1].isalnum() else ""
    return f"{shown}{named} (`pointsman trace {one_line(run_id, 128)}`)"


def marker(entry_id: str) -> str:
    """What shows that a pull request is an entry's; it is looked for before one is opened."""
    return f"<!-- pointsman-entry: {entry_id} -->"


def request_title(entry: Entry) -> str:
    """The title."""
    place = f" ({entry.stack.number}/{len(entry.stack.layers)})" if entry.HasField("stack") else ""
    return f"{subject(entry.title or f'Land {entry.run_id}')}{place}"


def request_body(content: RequestContent) -> str:
    """The body, bounded; words of agents are in cells and list items, on one line each."""
    entry, delivery = content.entry, content.delivery
    grade = Grade.Name(delivery.grade).removeprefix("GRADE_").replace("_", " ")
    onto = entry.stack.on_branch or entry.terms.target
    proven = f"Proven on `{onto}` at `{entry.candidate.base[:12]}`: {_cell(entry.candidate.summary)}."
    parts = [
        _section(
            "Open risks",
            (f"- **{one_line(risk.key, 128)}**: {_cell(risk.statement)}" for risk in delivery.open_risks[:MAX_RISKS]),
        ),
        f"{proven} Grade: **{grade}**.",
        _table(content),
        _stack(entry),
        _section("Changed tests", (f"- `{one_line(path, 300)}`" for path in changed_tests(delivery)[:MAX_TESTS])),
        f"Run `{entry.work_run_id}`, entry `{entry.id}`{content.trace and f', {content.trace}'}.",
        marker(entry.id),
    ]
    end = f"\n\n{parts[-1]}"
    whole = "\n\n".join(filter(None, parts[:-1]))
    return whole.encode()[: MAX_BODY - len(end.encode())].decode(errors="ignore") + end


def _stack(entry: Entry) -> str:
    """All layers, the highest first, and which of them this is."""
    layers = list(enumerate(entry.stack.layers, 1))
    here = entry.stack.number
    shown = (
        f"- {number}. {_cell(layer.title or layer.task_id)}{' **(this one)**' if number == here else ''}"
        for number, layer in reversed(layers)
    )
    return _section("Stack, to be merged from below", shown)


def changed_tests(delivery: Delivery) -> list[str]:
    """The changed files that judge work."""
    table = default_table()
    paths = {file.path for item in delivery.deliverables for file in item.changed_files}
    return sorted(path for path in paths if table.protection(path) is not None)


def _section(title: str, lines: Iterable[str]) -> str:
    shown = list(lines)
    return "\n".join((f"### {title}", "", *shown)) if shown else ""


def _table(content: RequestContent) -> str:
    results = {
        (attempt.task_id, claim.claim_id): claim for attempt in content.attempts for claim in attempt.finding.claims
    }
    evidence = {(attempt.task_id, one.id): one for attempt in content.attempts for one in attempt.work.evidence}
    rows = []
    for item in content.delivery.deliverables:
        for claim in item.claims:
            found = results.get((item.task_id, claim.id))
            said = ClaimStatus.Name(found.status).removeprefix("CLAIM_STATUS_") if found is not None else "ACCEPTED"
            shown = "; ".join(_evidence(evidence, item.task_id, key) for key in claim.evidence_ids[:3])
            rows.append(f"| {_cell(claim.statement)} | {shown or '-'} | {said} |")
    if not rows:
        return ""
    more = [f"| and {len(rows) - MAX_ROWS} more | | |"] if len(rows) > MAX_ROWS else []
    return "\n".join(("| claim | evidence | result |", "|---|---|---|", *rows[:MAX_ROWS], *more))


def _evidence(known: Mapping[tuple[str, str], Evidence], task_id: str, key: str) -> str:
    one = known.get((task_id, key))
    if one is None:
        return _cell(key)
    kind = EvidenceKind.Name(one.kind).removeprefix("EVIDENCE_KIND_").lower()
    shown = " ".join(one.command) or one.path or one.url or one.excerpt
    end = f" (exit code {one.exit_code})" if one.command else ""
    return f"{kind}: {_cell(shown)}{end}"


def _cell(text: str) -> str:
    """Others' words in a cell: one line, without what Markdown, HTML or a mention would make of them."""
    line = one_line(text, MAX_CELL)
    for sign, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("`", "'"), ("@", "@\u200b")):
        line = line.replace(sign, shown)
    return line
