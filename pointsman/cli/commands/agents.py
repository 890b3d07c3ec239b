"""`pointsman agents`: who works, who waits for work, who is lost, and what each has spent."""

import typer

from pointsman.api.orchestrator.v1.agent_pb2 import Agent, AgentState
from pointsman.api.orchestrator.v1.assignment_pb2 import Capability
from pointsman.cli.render.run_progress import usage_text
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, ask, print_json
from pointsman.client import Client

app = typer.Typer(add_completion=False)


@app.command()
def agents(*, server: ServerAt = "", project: InProject = "local", as_json: AsJson = False) -> None:
    """List the agents that ever asked for work: working, idle or lost, and what they have spent."""

    async def question(client: Client) -> int:
        found = [agent async for agent in client.agents.all()]
        if as_json:
            print_json(found)
        else:
            print("\n".join(map(agent_line, found)) or "no agent has asked for work yet")
        return 0

    ask(server, project, question)


def agent_line(agent: Agent) -> str:
    """An agent as one line."""
    state = AgentState.Name(agent.state).removeprefix("AGENT_STATE_").lower()
    can = ", ".join(Capability.Name(one).removeprefix("CAPABILITY_").lower() for one in agent.capabilities)
    seen = f"{agent.last_seen_at.ToDatetime():%Y-%m-%d %H:%M:%S}"
    done = f"{agent.usage.assignments} assignments{usage_text(agent.usage)}"
    return f"{agent.id:<24} {state:<8} {can:<10} seen {seen}  {done}{_pause(agent)}"


def _pause(agent: Agent) -> str:
    """Until when its account rests, and in whose words."""
    if not agent.HasField("paused_until"):
        return ""
    said = f": {agent.pause_reason}" if agent.pause_reason else ""
    return f"  paused until {agent.paused_until.ToDatetime():%Y-%m-%d %H:%M:%S} UTC{said}"
