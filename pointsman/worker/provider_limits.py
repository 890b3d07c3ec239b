"""Limits of a model's provider as reported to the control plane, and the account that they apply to."""

import hashlib
import os

from pointsman._shared.redaction import redact
from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.profiles import Profile
from pointsman.usage.limits import Limit

MAX_MESSAGE = 1000
DIGEST_LETTERS = 12


def limit_message(limit: Limit) -> pb.ProviderLimit:
    """The limit for a message."""
    kind = pb.LimitKind.Value(f"LIMIT_KIND_{limit.kind.upper()}")
    message = pb.ProviderLimit(kind=kind, message=redact(limit.line)[:MAX_MESSAGE])
    if limit.reset_at is not None:
        message.reset_at.FromDatetime(limit.reset_at)
    return message


def account_of(profile: Profile) -> str:
    """What the agent's work is billed to: its name, and a digest of the keys that it is given.

    Two machines with the same key have the same account; where there is no key, the login of this user counts.
    """
    if not profile.output:
        return ""
    keys = "\0".join(os.environ.get(name, "") for name in profile.environment)
    digest = hashlib.sha256(keys.encode()).hexdigest()[:DIGEST_LETTERS]
    return f"{profile.name}/{digest if keys.strip(chr(0)) else 'login'}"
