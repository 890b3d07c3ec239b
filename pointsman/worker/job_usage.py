"""What an agent used for an assignment."""

from pathlib import Path

from pointsman.api.orchestrator.v1.run_pb2 import Usage
from pointsman.usage.output import AgentOutput
from pointsman.worker import handoff as files
from pointsman.worker import output_reader
from pointsman.worker.sdk import Job


def read_usage(job: Job, handoff: Path, output: AgentOutput) -> None:
    """Reads the usage that the agent prints, or leaves in a file; it counts even when the attempt fails."""
    job.tool_calls.extend(output.tool_calls.values())
    if (used := output.used) is not None:
        job.usage.tokens, job.usage.cost_micros = used.tokens, used.cost_micros or 0
        job.usage.unpriced_tokens = used.unpriced_tokens
        job.attributes |= {
            "gen_ai.response.model": used.model,
            "gen_ai.usage.input_tokens": used.input_tokens,
            "gen_ai.usage.output_tokens": used.output_tokens,
        }
    if (handoff / files.USAGE).exists():
        usage = output_reader.read_message(handoff, files.USAGE, Usage())
        job.usage.tokens, job.usage.cost_micros = max(usage.tokens, 0), max(usage.cost_micros, 0)
        job.usage.unpriced_tokens = max(usage.unpriced_tokens, 0)
