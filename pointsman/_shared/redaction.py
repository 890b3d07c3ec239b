"""Masks secrets, recognised by their format, in log lines, spans and errors."""

from collections.abc import Mapping

import re2

MASK = "***"
_NAMED = r"(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret|credentials?)"
KINDS: Mapping[str, str] = {
    "private key": r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?:[A-Za-z0-9+/=\s]|\\n)*(?:-----END [A-Z0-9 ]*PRIVATE KEY-----)?",
    "password in an address": r"[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*:[^\s/@]+@",
    "webhook of Slack": r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]+",
    "authorization header": r"(?i:bearer|basic)\s+[A-Za-z0-9._~+/-]{8,}=*",
    "signed token": r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
    "key id of AWS": r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}",
    "token of GitHub": r"gh[pousr]_[A-Za-z0-9]{20,}",
    "fine-grained token of GitHub": r"github_pat_[A-Za-z0-9_]{20,}",
    "token of GitLab": r"gl(?:pat|ptt|dt|rt|soat)-[A-Za-z0-9_-]{16,}",
    "token of Slack": r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}",
    "key of Anthropic": r"sk-ant-[A-Za-z0-9_-]{16,}",
    "key of OpenAI": r"sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}",
    "key of Stripe": r"(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}",
    "key of Google": r"AIza[A-Za-z0-9_-]{30,}",
    "token of Google": r"ya29\.[A-Za-z0-9_-]{16,}",
    "token of npm": r"npm_[A-Za-z0-9]{30,}",
    "token of PyPI": r"pypi-[A-Za-z0-9_-]{16,}",
    "token of Hugging Face": r"hf_[A-Za-z0-9]{20,}",
    "key of SendGrid": r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "key of Twilio": r"\b(?:SK|AC)[0-9a-f]{32}\b",
    "secret of a lease": r"lease_[A-Za-z0-9_-]{40,}",
    "token of a cloud": r"(?:dop_v1_|doo_v1_|dapi|hvs\.|hvb\.|lin_api_|shpat_)[A-Za-z0-9_-]{20,}",
    "named value": r"(?i:[A-Za-z0-9_.-]*" + _NAMED + r"[A-Za-z0-9_.-]*)[\"']?\s*(?:[:=]|=>)\s*[\"']?[^\s\"',;&]{6,}",
}
"""The kinds of secrets that are known, each by its expression; linear in the text, whatever it holds."""
_SECRET = re2.compile("|".join(f"(?:{expression})" for expression in KINDS.values()))


def redact(text: str) -> str:
    """The text with everything that looks like a secret masked."""
    masked: str = _SECRET.sub(MASK, str(text))  # re2 makes an empty one of the text's own type: an enum's has none
    return masked
