"""The attributes that our spans may have, each declared once: ids, enums and numbers, never content."""

from collections.abc import Mapping

ATTRIBUTES: Mapping[str, str] = {
    "pointsman.entity.id": "Which entity moved.",
    "pointsman.entity.kind": "What kind of entity it is: run, workflow, pipeline, decision.",
    "pointsman.seq": "Which of its transitions it is, from 1.",
    "pointsman.event": "What happened.",
    "pointsman.state.from": "The state it left.",
    "pointsman.state.to": "The state it came into; the same one where it only learned something.",
    "pointsman.project": "The project.",
    "pointsman.actor": "The principal who caused it; `engine` is the service itself.",
    "pointsman.run.id": "The run it belongs to.",
    "pointsman.assignment.id": "The assignment that an agent works on.",
    "pointsman.assignment.purpose": "What the assignment is for.",
    "pointsman.assignment.attempt": "Which attempt it is, from 1.",
    "pointsman.assignment.outcome": "How the attempt ended: done, given_up, not_taken, lost, stopped.",
    "pointsman.assignment.tokens": "Tokens that the agent reported.",
    "pointsman.commit.transitions": "How many transitions a commit wrote.",
    "rpc.system.name": "Always grpc.",
    "rpc.method": "The whole name of the RPC.",
    "rpc.response.status_code": "How the call ended.",
    "db.system.name": "sqlite or postgresql.",
    "db.namespace": "The store.",
    "db.operation.name": "Always COMMIT: one span per joined commit.",
    "db.operation.batch.size": "How many commands the commit joined.",
    "gen_ai.operation.name": "Always invoke_agent.",
    "gen_ai.provider.name": "Always pointsman: which model an agent asks is its own affair.",
    "gen_ai.agent.id": "The agent, by the id it polls under.",
    "gen_ai.agent.name": "The role in which it works.",
    "gen_ai.conversation.id": "The run, which is the conversation that the work belongs to.",
    "error.type": "What went wrong: a status code or a word of ours, never an exception's text.",
}
