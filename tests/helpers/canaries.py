"""Secrets of many kinds that nobody uses, each put together from parts, and the places where none may be seen."""

from collections.abc import Iterable, Mapping

_BODY = "Q7w9ZxCanary3Vb5Nm2Kj8Hg4Fd6Sa1PoIuYtRe"
_HEX = "c0ffee5ecadecade1badb002deadcafe"


def canaries() -> Mapping[str, tuple[str, str]]:
    """By kind: the text that holds a secret, and the part of it that must never be seen again."""
    upper = "CANARY7QWERTZUIO"
    made = {
        "key id of AWS": ("AKIA" + upper, upper),
        "secret key of AWS": (f"aws_secret_access_key={_BODY}w+/", _BODY),
        "token of GitHub": ("ghp_" + _BODY, _BODY),
        "fine-grained token of GitHub": ("github_pat_" + _BODY, _BODY),
        "token of GitLab": ("glpat-" + _BODY, _BODY),
        "token of Slack": (f"xoxb-{_BODY}", _BODY),
        "webhook of Slack": (f"https://hooks.slack.com/services/T0/B0/{_BODY}", _BODY),
        "key of Stripe": ("sk_live_" + _BODY, _BODY),
        "key of Google": ("AIza" + _BODY, _BODY),
        "token of Google": ("ya29." + _BODY, _BODY),
        "key of OpenAI": ("sk-proj-" + _BODY, _BODY),
        "key of Anthropic": ("sk-ant-api03-" + _BODY, _BODY),
        "signed token": (f"eyJhbGciOi.eyJzdWIiOi{_BODY}.{_BODY}", _BODY),
        "private key": (f"-----BEGIN PRIVATE KEY-----\n{_BODY}\n-----END PRIVATE KEY-----", _BODY),
        "password in an address": (f"postgresql://user:{_BODY}@db/x", _BODY),
        "bearer header": (f"Authorization: Bearer {_BODY}", _BODY),
        "basic header": (f"Basic {_BODY}==", _BODY),
        "token of npm": ("npm_" + _BODY, _BODY),
        "token of PyPI": ("pypi-AgEI" + _BODY, _BODY),
        "token of Hugging Face": ("hf_" + _BODY, _BODY),
        "key of SendGrid": (f"SG.{_BODY}.{_BODY}", _BODY),
        "key of Twilio": ("SK" + _HEX, _HEX),
        "secret of a lease": (f"lease_{_BODY}_1o", _BODY),
        "password": (f'password: "{_BODY}"', _BODY),
    }
    return {
        kind: (_marked(text, number), _marked(core, number)) for number, (kind, (text, core)) in enumerate(made.items())
    }


def _marked(text: str, number: int) -> str:
    """Each kind with a body of its own, so that a leak names its kind."""
    return text.replace("Canary3", f"Canary{chr(65 + number)}").replace("c0ffee", f"c0ffe{number % 16:x}")


def seen_in(text: str) -> list[str]:
    """The kinds whose secret part is in a text, whole or the greater half of it."""
    return [kind for kind, (_, core) in canaries().items() if core[: len(core) * 2 // 3] in text]


def all_seen(places: Mapping[str, Iterable[str]]) -> list[str]:
    """Where which kind was seen."""
    return [f"{kind} in {place}" for place, texts in places.items() for kind in seen_in("\n".join(texts))]
