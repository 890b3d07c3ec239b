"""A model on loopback that knows one job by heart, and speaks to each agent in the dialect that its maker's servers speak.

What it says next follows from how many of its tool calls came back already, so it keeps no state. It is asked at
`/AGENT/…`; whatever it does not know it answers with 404, and remembers that it was asked.
"""

import json
import re
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

CHANGED = "hello/__init__.py"
BEFORE = "    raise NotImplementedError\n"
AFTER = '    return f"Hello, {name}!"\n'
PROOF = ("python3", "-m", "unittest", "discover", "-q")
DONE = "It is done: the greeting is written, and the test passes."
_HANDOFF = re.compile(r"leave three files in (\S+?)[.:]\s")
_CRITERION = re.compile(r"^> - (\S+) \(required\)", re.MULTILINE)
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Say:
    """What the model says: words, or the call of a tool."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: f"call_{next(_numbers)}")

    @property
    def json(self) -> str:
        """The tool's arguments as the wire has them."""
        return json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a request matters: where the work goes, what it must meet, which tools there are and how far it is."""

    handoff: str
    criteria: tuple[str, ...]
    tools: frozenset[str]
    answers: tuple[str, ...]

    @property
    def file(self) -> str:
        """The file to edit, by its whole path; the working tree lies beside the handoff folder."""
        return f"{self.handoff.rpartition('/')[0]}/tree/{CHANGED}"

    @property
    def claims_file(self) -> str:
        """Where the claims are left."""
        return f"{self.handoff}/claims.json"

    def claims(self) -> str:
        """What the work is claimed to be."""
        claim = {"id": "C1", "statement": "it greets", "criterion_ids": self.criteria, "evidence_ids": ["E1"]}
        return json.dumps([claim])


def asked_in(body: Any) -> Asked:
    """Read a request of any dialect."""
    found = list(_values(body))
    words = "\n".join(value for value in found if isinstance(value, str))
    handoff = _HANDOFF.search(words)
    return Asked(
        handoff.group(1) if handoff else "",
        tuple(dict.fromkeys(_CRITERION.findall(words))),
        frozenset(str(value["name"]) for value in _values(body.get("tools", [])) if _is_named(value)),
        tuple(json.dumps(value) for value in found if _is_answer(value)),
    )


def _values(value: Any) -> Iterator[Any]:
    yield value
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _values(one)


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def _is_answer(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = str(value.get("type", ""))
    return (
        kind == "tool_result"
        or kind.endswith("_call_output")
        or value.get("role") == "tool"
        or "functionResponse" in value
    )


def prove() -> str:
    """The command line that takes the evidence and says what changed; it relies on what the agent passes on to its shell."""
    changed = json.dumps([{"path": CHANGED, "change": "MODIFIED"}])
    evidence = f"pointsman evidence run --id E1 -- {shlex.join(PROOF)}"
    return f'{evidence} && printf %s {shlex.quote(changed)} > "$POINTSMAN_HANDOFF/changed_files.json"'


def claude(asked: Asked) -> list[Say]:
    """Read, edit, shell, and a file outside of the working tree."""
    return [
        Say(tool="Read", arguments={"file_path": asked.file}),
        Say(tool="Edit", arguments={"file_path": asked.file, "old_string": BEFORE, "new_string": AFTER}),
        Say(tool="Bash", arguments={"command": prove(), "description": "take the evidence"}),
        Say(tool="Write", arguments={"file_path": asked.claims_file, "content": asked.claims()}),
    ]


def codex(asked: Asked) -> list[Say]:
    """Patches, which go through its shell tool, and the shell."""
    edit = f"*** Update File: {CHANGED}\n@@\n-{BEFORE}+{AFTER}"
    claims = f"*** Add File: {asked.claims_file}\n+{asked.claims()}\n"
    return [Say(tool="exec_command", arguments={"cmd": line}) for line in (_patch(edit), prove(), _patch(claims))]


def _patch(change: str) -> str:
    return f"apply_patch <<'EOF'\n*** Begin Patch\n{change}*** End Patch\nEOF"


def gemini(asked: Asked) -> list[Say]:
    """Read, replace, shell, and a file outside of the working tree."""
    edit = {"file_path": asked.file, "old_string": BEFORE, "new_string": AFTER, "instruction": "write the greeting"}
    return [
        Say(tool="read_file", arguments={"file_path": asked.file}),
        Say(tool="replace", arguments=edit),
        Say(tool="run_shell_command", arguments={"command": prove(), "description": "take the evidence"}),
        Say(tool="write_file", arguments={"file_path": asked.claims_file, "content": asked.claims()}),
    ]


def opencode(asked: Asked) -> list[Say]:
    """Read, edit, shell, and a file outside of the working tree."""
    return [
        Say(tool="read", arguments={"filePath": asked.file}),
        Say(tool="edit", arguments={"filePath": asked.file, "oldString": BEFORE, "newString": AFTER}),
        Say(tool="bash", arguments={"command": prove(), "description": "take the evidence"}),
        Say(tool="write", arguments={"filePath": asked.claims_file, "content": asked.claims()}),
    ]


def qwen(asked: Asked) -> list[Say]:
    """Read, edit, shell, and a file outside of the working tree."""
    return [
        Say(tool="read_file", arguments={"file_path": asked.file}),
        Say(tool="edit", arguments={"file_path": asked.file, "old_string": BEFORE, "new_string": AFTER}),
        Say(
            tool="run_shell_command",
            arguments={"command": prove(), "description": "take the evidence", "is_background": False},
        ),
        Say(tool="write_file", arguments={"file_path": asked.claims_file, "content": asked.claims()}),
    ]


def cline(asked: Asked) -> list[Say]:
    """The shell for everything: each command is one text."""
    edited = (
        f"import pathlib; p = pathlib.Path({asked.file!r}); p.write_text(p.read_text().replace({BEFORE!r}, {AFTER!r}))"
    )
    lines = (
        shlex.join(("python3", "-c", edited)),
        prove(),
        f"printf %s {shlex.quote(asked.claims())} > {shlex.quote(asked.claims_file)}",
    )
    return [Say(tool="run_commands", arguments={"commands": [line]}) for line in lines]


def aider(asked: Asked) -> list[Say]:
    """It has no tools: edits in its own format, of the file and of the three that it leaves."""
    evidence = json.dumps([{"id": "E1", "kind": "COMMAND", "command": PROOF, "exit_code": 0}])
    changed = json.dumps([{"path": CHANGED, "change": "MODIFIED"}])
    new = {"claims.json": asked.claims(), "evidence.json": evidence, "changed_files.json": changed}
    blocks = [_block(CHANGED, BEFORE, AFTER)]
    blocks += [_block(f"{asked.handoff.rpartition('/')[2]}/{name}", "", f"{text}\n") for name, text in new.items()]
    return [Say("\n\n".join(blocks))]


def _block(path: str, before: str, after: str) -> str:
    return f"{path}\n```\n<<<<<<< SEARCH\n{before}=======\n{after}>>>>>>> REPLACE\n```"


SCRIPTS: dict[str, Callable[[Asked], list[Say]]] = {
    "claude": claude,
    "codex": codex,
    "gemini": gemini,
    "aider": aider,
    "opencode": opencode,
    "qwen": qwen,
    "cline": cline,
}


def next_word(agent: str, asked: Asked) -> Say:
    """What the model says now; to side questions (a title, a summary), which do not carry the task, only words."""
    if not asked.handoff or (agent != "aider" and not asked.tools):
        return Say("Greeting")
    return [*SCRIPTS[agent](asked), Say(DONE)][min(len(asked.answers), len(SCRIPTS[agent](asked)))]


Answer = Callable[[str, Any], Say]
"""What the model says to an agent's request."""


def by_heart(agent: str, body: Any) -> Say:
    """What the model says to a request in the job that it knows."""
    return next_word(agent, asked_in(body))


def messages(say: Say, model: str) -> tuple[Any, list[Any]]:
    """Anthropic's dialect: the whole answer, and the same as a stream of events."""
    block: dict[str, Any] = {"type": "text", "text": say.text}
    opening: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": say.text}
    if say.tool:
        block = {"type": "tool_use", "id": say.id, "name": say.tool, "input": say.arguments}
        opening, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": say.json}
    usage = {"input_tokens": 100, "output_tokens": 20}
    reason = "tool_use" if say.tool else "end_turn"
    start = {"id": f"msg_{say.id}", "type": "message", "role": "assistant", "model": model, "usage": usage}
    whole = {**start, "content": [block], "stop_reason": reason, "stop_sequence": None}
    return whole, [
        {"type": "message_start", "message": {**start, "content": [], "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": opening},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def responses(say: Say, model: str) -> tuple[Any, list[Any]]:
    """OpenAI's dialect for codex."""
    text = {"type": "output_text", "text": say.text, "annotations": []}
    item: dict[str, Any] = {
        "type": "message",
        "id": say.id,
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    if say.tool:
        item = {
            "type": "function_call",
            "id": f"fc_{say.id}",
            "call_id": say.id,
            "name": say.tool,
            "arguments": say.json,
        }
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    whole: dict[str, Any] = {
        "id": f"resp_{say.id}",
        "object": "response",
        "model": model,
        "status": "completed",
        "output": [item],
    }
    whole["usage"] = usage
    return whole, [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]


def completions(say: Say, model: str) -> tuple[Any, list[Any]]:
    """OpenAI's older dialect, which most programs speak to servers of one's own."""
    call = {"index": 0, "id": say.id, "type": "function", "function": {"name": say.tool, "arguments": say.json}}
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    if say.tool:
        message["tool_calls"] = [call]
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    reason = "tool_calls" if say.tool else "stop"
    top = {"id": f"chat_{say.id}", "created": 0, "model": model}
    whole: dict[str, Any] = {**top, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
    chunk = {**top, "object": "chat.completion.chunk"}
    return whole, [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
        "[DONE]",
    ]


def contents(say: Say, model: str) -> tuple[Any, list[Any]]:
    """Google's dialect."""
    part = {"functionCall": {"name": say.tool, "args": say.arguments}} if say.tool else {"text": say.text}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}
    return whole, [whole]


DIALECTS = {
    "/messages": messages,
    "/responses": responses,
    "/chat/completions": completions,
    ":streamGenerateContent": contents,
    ":generateContent": contents,
}
COUNTS = {"/count_tokens": {"input_tokens": 100}, ":countTokens": {"totalTokens": 100}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Model"

    def do_POST(self) -> None:
        """A question of an agent."""
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        agent = path.split("/")[1]
        dialect = next((one for end, one in DIALECTS.items() if path.endswith(end)), None)
        counted = next((one for end, one in COUNTS.items() if path.endswith(end)), None)
        if dialect is None or agent not in SCRIPTS:
            self._answer(200 if counted else 404, json.dumps(counted or {}), "application/json")
            self.server.log(f"{'counted' if counted else 'not known'}: {self.path}")
            return
        body = json.loads(raw)
        say = self.server.answer(agent, body)
        self.server.log(f"{path}: {asked_in(body).answers[-1:]} -> {say.tool or say.text!r}")
        whole, events = dialect(say, str(body.get("model", "scripted")))
        if not body.get("stream") and not path.endswith(":streamGenerateContent"):
            self._answer(200, json.dumps(whole), "application/json")
            return
        self._answer(200, "".join(map(_event, events)), "text/event-stream")

    def do_GET(self) -> None:
        """Nothing is to be had but answers."""
        self.server.log(f"not known: GET {self.path}")
        self._answer(404, "{}", "application/json")

    def _answer(self, status: int, body: str, kind: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the library gives it
        """Kept quiet; what matters is in the server's own log."""


def _event(event: Any) -> str:
    if isinstance(event, str):
        return f"data: {event}\n\n"
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"


class Model(ThreadingHTTPServer):
    """The server, and what it was asked."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.heard: list[str] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that was killed takes no answer."""

    def log(self, line: str) -> None:
        """Remember a question."""
        self.heard.append(line)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def model(answer: Answer = by_heart) -> Iterator[Model]:
    """A model that answers while the block runs."""
    server = Model(answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
