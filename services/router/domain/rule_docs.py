"""Documentation printed from the rules: tables for the docs, prompts for the soft router."""

from collections.abc import Iterable

from pointsman.services.router.domain.enums import Bypass, Mode
from pointsman.services.router.domain.outcomes import REACTION_OF
from pointsman.services.router.domain.rule_document import OwnRule, RuleDocument, RuleEffect
from pointsman.services.router.domain.thinking import TABLE

_BYPASSES = {
    Bypass.USER_OVERRIDE: 'the user says so: "just do it", "skip confirmation", "I\'m sure"; the stakes stay',
    Bypass.TRIVIAL: "a trivial command",
    Bypass.READ_ONLY: "the whole message only reads",
    Bypass.ALREADY_DEBATED: "the task was debated in this session",
}
OWN_EXAMPLE = OwnRule("ticket", RuleEffect.REFERENCE, r"\bpaint-[0-9]+\b")
MODE_ROWS = (
    ("1", "text that a program wrote", Mode.ANSWER, "system.marker", "<system-reminder>fix it</system-reminder>"),
    ("2", "one trivial command: pwd, date, whoami, echo, ping", Mode.ACTION, "fast_path.*", "date -u"),
    (
        "3",
        "a reference: file, folder, URL, host, fenced code, the code at hand",
        Mode.ACTION,
        "reference.*",
        "why did tests/e2e/login.ts fail?",
    ),
    ("4", "a rule of the project's own", "as it says", "own.*", "what about PAINT-17?"),
    (
        "5",
        "an order whose object is work, also dressed as a question",
        Mode.ACTION,
        "order.verb",
        "can you add a button?",
    ),
    ("6", "a command line", Mode.ACTION, "order.command_line", "npm install"),
    ("7", "an approval", Mode.ACTION, "order.approval", "yes, go ahead"),
    ("8", "a wish: I want, we need, it should", Mode.ACTION, "order.wish", "we need a dark theme"),
    ("9", "a fault report", Mode.ACTION, "order.fault_report", "the export button is broken"),
    ("10", "code by its name", Mode.ACTION, "order.names_code", "the parse_date thing again"),
    ("11", "a question", Mode.ANSWER, "talk.question", "how do I delete a branch?"),
    ("12", "a request for words: explain, translate", Mode.ANSWER, "talk.request", "write a poem about autumn"),
    ("13", "thanks and other acknowledgements", Mode.ANSWER, "talk.acknowledgement", "great, thanks"),
    (
        "14",
        "a fault or a wish that only explains a question",
        Mode.ANSWER,
        "talk.background_and_question",
        "I'm new to Helm and the charts confuse me. When does one need a hook?",
    ),
    ("15", "what asks for nothing: past tense, plans, negations", Mode.ANSWER, "talk.remark", "no need to fix it"),
    ("16", "any other statement", Mode.ANSWER, "talk.statement", "I like JavaScript more than Java"),
)
"""The order in which the mode is decided, each row with an example message; the own rule of row 4 is OWN_EXAMPLE."""


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Prints a Markdown table."""
    columns = list(head)
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def mode_table() -> str:
    """How the mode is decided."""
    return table(("#", "the message has", "mode", "rule", "for example"), MODE_ROWS)


def keyword_table(document: RuleDocument) -> str:
    """The keywords that count as triggers."""
    english = document.english
    rows = [(name, words.replace(" ", ", ")) for name, words in english.keywords.items()]
    rows.append(("code indicators", english.code_indicators.replace(" ", ", ")))
    return table(("family", "words, in every inflection but the past"), rows)


def pattern_table(document: RuleDocument) -> str:
    """The expressions over the whole text."""
    return table(("rule", "finds"), [(name, rule.about) for name, rule in document.patterns.items()])


def debate_table(document: RuleDocument) -> str:
    """What starts a planning debate."""
    rows = [(name, rule.about, rule.stakes) for name, rule in document.debate.items()]
    return table(("trigger", "condition", "stakes"), rows)


def bypass_table() -> str:
    """What bypasses a debate, in order of precedence."""
    return table(("bypass", "when"), [(bypass, _BYPASSES[bypass]) for bypass in Bypass])


def reaction_table() -> str:
    """What an outcome leads to, in order of precedence."""
    return table(("cause", "reaction"), [(cause, reaction.upper()) for cause, reaction in REACTION_OF.items()])


def thinking_table() -> str:
    """The thinking router's procedure."""
    rows = [
        (number, row.condition, row.route or "null", row.status, row.error or "", row.reason, row.next)
        for number, row in enumerate(TABLE, 1)
    ]
    return table(("#", "condition", "routed_to", "status", "error_code", "reason", "next"), rows)


def tables(document: RuleDocument) -> dict[str, str]:
    """Every table by the name of its marker."""
    return {
        "mode": mode_table(),
        "keywords": keyword_table(document),
        "patterns": pattern_table(document),
        "debate": debate_table(document),
        "bypass": bypass_table(),
        "reactions": reaction_table(),
        "thinking": thinking_table(),
    }


def with_tables(text: str, document: RuleDocument) -> str:
    """Prints the tables of a document anew between `<!-- table: name -->` and `<!-- end -->`."""
    for name, content in tables(document).items():
        begin, end = f"<!-- table: {name} -->\n", "<!-- end -->"
        before, marker, rest = text.partition(begin)
        if marker:
            text = f"{before}{begin}{content}\n{end}{rest.partition(end)[2]}"
    return text


def soft_router_prompt(document: RuleDocument) -> str:
    """The rules as a prompt, for clients that cannot call the router."""
    return "\n".join(
        (
            f"# Task router, rule set {document.version}",
            "",
            "Classify every user message before you act on it. Go through the table; the first row that holds decides.",
            "When in doubt, choose ACTION.",
            "",
            mode_table(),
            "",
            "Count the distinct triggers of an ACTION: each keyword (by stem), path, URL, host, code block and code",
            "indicator once. Three or more: STRONG, delegation is mandatory. One or two: WEAK, you may ask for clarification.",
            "",
            keyword_table(document),
            "",
            "Before an ACTION starts, debate the plan if one of these holds",
            "",
            debate_table(document),
            "",
            "unless one of these does:",
            "",
            bypass_table(),
            "",
        )
    )


def mode_prompt(mode: Mode) -> str:
    """The prompt of the agent that takes a message of this mode."""
    if mode is Mode.ANSWER:
        return (
            "# Mode: ANSWER → Direct Response\n\n"
            "The message asks for words, not for work. Answer it directly and briefly.\n"
            "Change nothing, run nothing, delegate nothing. If it turns out that files, the web or code are needed,\n"
            "say so and ask for the task to be sent again.\n"
        )
    return (
        "# Mode: ACTION → Swarm Orchestrator\n\n"
        "The message asks for work. Do not answer it yourself: decompose it into tasks and delegate each one to a\n"
        "specialist. With WEAK confidence you may ask one clarifying question first; with STRONG confidence you may not\n"
        "decline. Where a planning debate is due, let advocate and critic argue before anything is executed.\n"
    )
