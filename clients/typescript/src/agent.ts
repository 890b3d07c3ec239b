// An agent: pulls assignments, keeps their leases alive while it works, and hands in.
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type CompletionOutcome,
  CompletionSchema,
  type Lease,
  LeaseKeySchema,
} from "../gen/pointsman/api/orchestrator/v1/agent_pb.js";
import type { Capability } from "../gen/pointsman/api/orchestrator/v1/assignment_pb.js";
import { type Client, newRequestId, patiently } from "./client.js";

const POLL_SECONDS = 10n;
const HEARTBEAT_MS = 10_000;

export type Completion = MessageInitShape<typeof CompletionSchema>;
type Key = MessageInitShape<typeof LeaseKeySchema>;
/** Does what a lease asks for; the signal ends when the lease is lost. */
export type Work = (lease: Lease, lost: AbortSignal) => Promise<Completion>;

export class Agent {
  /** Sees every outcome, when set. */
  handedIn?: (completion: Completion, outcome: CompletionOutcome) => Promise<void>;

  constructor(
    readonly client: Client,
    readonly id: string,
    readonly capabilities: Capability[],
    readonly work: Work,
  ) {}

  /** Works until the signal, or until trying again can no longer help. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      for (const lease of await this.poll()) await this.handle(lease);
    }
  }

  /** Hands in one result; an outcome that is not accepted says why. */
  async complete(completion: Completion): Promise<CompletionOutcome> {
    const request = { requestId: newRequestId(), agentId: this.id, completions: [completion] };
    const { outcomes } = await patiently((signal) => this.client.agents.complete(request, { signal }));
    const [outcome] = outcomes;
    if (!outcome) throw new Error("the server sent no outcome");
    return outcome;
  }

  private async poll(): Promise<Lease[]> {
    const wanted = { capabilities: this.capabilities };
    const request = { requestId: newRequestId(), agentId: this.id, wanted, wait: { seconds: POLL_SECONDS } };
    return (await patiently((signal) => this.client.agents.poll(request, { signal }))).leases;
  }

  private async handle(lease: Lease): Promise<void> {
    const lost = new AbortController();
    const beating = setInterval(() => void this.keepAlive(keyOf(lease), lost), HEARTBEAT_MS);
    try {
      const completion = await this.work(lease, lost.signal);
      const outcome = await this.complete(completion);
      await this.handedIn?.(completion, outcome);
    } catch (error) {
      if (!lost.signal.aborted) await this.fail(lease, error);
    } finally {
      clearInterval(beating);
    }
  }

  private async fail(lease: Lease, error: unknown): Promise<void> {
    const failures = [{ lease: keyOf(lease), error: String(error).slice(0, 4096) }];
    const request = { requestId: newRequestId(), agentId: this.id, failures };
    await patiently((signal) => this.client.agents.fail(request, { signal }));
  }

  private async keepAlive(key: Key, lost: AbortController): Promise<void> {
    const request = { requestId: newRequestId(), agentId: this.id, leases: [key] };
    const answer = await this.client.agents.heartbeat(request).catch(() => undefined);
    if (answer?.lostAssignmentIds.length) lost.abort();
  }
}

export const keyOf = (lease: Lease): Key => ({
  assignmentId: lease.assignment?.id ?? "",
  epoch: lease.epoch,
  secret: lease.secret,
});
