"""Finds security-relevant paths (auth/, .ssh/, secrets.py) that a message changes."""

import re
from collections.abc import Iterable

from pointsman.services.router.domain.classification.debate_triggers import DebateRules, command_reads, is_reading
from pointsman.services.router.domain.enums import TriggerKind
from pointsman.services.router.domain.language.english import speech_act_of
from pointsman.services.router.domain.language.lexicon import MASK
from pointsman.services.router.domain.language.readings import Reading
from pointsman.services.router.domain.language.scan import Message
from pointsman.services.router.domain.language.sentence import English, Sentence, SpeechAct
from pointsman.services.router.domain.model import Trigger

_IMPLIED_WORK = frozenset({SpeechAct.FAULT, SpeechAct.WISH, SpeechAct.CODE})
_FOREIGN_WORK = frozenset({"do", "make", "wish", "fault"})
_METHODS = frozenset({"get", "post", "put", "head", "options"})
_METHOD_LETTERS = 12
_SEPARATOR = re.compile(r"[/\\]")
_ENDING = re.compile(r"[.:]")


def changed_path(rules: DebateRules, english: English, message: Message, sentences: Iterable[Sentence]) -> str:
    """The security-relevant path of a message in which a sentence with a reference does more than read; empty if there is none."""
    path = _sensitive_path(rules.segments, message)
    if not path or message.as_action or any(_changes(rules, english, sentence) for sentence in sentences):
        return path
    return ""


def foreign_changed_path(rules: DebateRules, reading: Reading, message: Message) -> str:
    """The security-relevant path of a message in another language; empty if it is not changed."""
    if message.as_action or not reading.hits.isdisjoint(_FOREIGN_WORK):
        return _sensitive_path(rules.segments, message)
    return ""


def _changes(rules: DebateRules, english: English, sentence: Sentence) -> bool:
    if not any(word[0] == MASK for word in sentence.words):
        return False
    if sentence.imperatives:
        return any(imperative.is_work and not is_reading(imperative) for imperative in sentence.imperatives)
    act = speech_act_of(english, sentence)
    return not command_reads(rules, sentence) if act is SpeechAct.COMMAND else act in _IMPLIED_WORK


def _sensitive_path(segments: frozenset[str], message: Message) -> str:
    """The first path with a security-relevant segment or file stem; empty if there is none."""
    for reference in message.references:
        named = reference.kind is TriggerKind.PATH and not segments.isdisjoint(_stems(reference.name))
        if named and not _is_endpoint(message.lower, reference):
            return reference.name
    return ""


def _is_endpoint(text: str, path: Trigger) -> bool:
    """Whether the path is an API endpoint after an HTTP method: POST /auth/login."""
    before = text[max(0, path.start - _METHOD_LETTERS) : path.start].split()
    return path.name[0] == "/" and bool(before) and before[-1] in _METHODS


def _stems(path: str) -> Iterable[str]:
    """Each path segment up to its first dot or colon, without the leading dot of a hidden file: .ssh/id_key, src/auth.ts:12."""
    for segment in _SEPARATOR.split(path):
        yield _ENDING.split(segment.lstrip(".*"), maxsplit=1)[0]
