"""Who calls about leases: the holder, the lease that it names, and what it may do."""

from dataclasses import replace

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.services.chassis.core.caller import Caller, Role
from pointsman.services.chassis.core.ids import secret_digest
from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.polling import LeaseKey


def holder_of(agent_id: str, caller: Caller) -> Holder:
    """Who asks. The control plane itself, which everybody on an insecure loopback is, names each agent it speaks for."""
    principal = f"{caller.principal}/{agent_id}" if Role.SERVICE in caller.roles else caller.principal
    return Holder(caller.project, principal, agent_id)


def granted(caller: Caller) -> frozenset[Capability]:
    """What the principal may do."""
    return frozenset(capability for capability in Capability if caller.may(capability.lower()))


def lease_key(key: agent.LeaseKey) -> LeaseKey:
    """A lease as the caller names it; the secret itself goes no further."""
    return LeaseKey(key.assignment_id, key.epoch, secret_digest(key.secret))


def own(caller: Caller, part: str) -> Caller:
    """The caller, for one part of what it asks: each part has an answer of its own."""
    return replace(caller, request_id=f"{caller.request_id}/{part}")
