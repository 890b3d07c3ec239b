// A client of the control plane in one project.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, type Client as Stub, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Transition } from "../gen/pointsman/api/common/v1/common_pb.js";
import { AgentService } from "../gen/pointsman/api/orchestrator/v1/agent_pb.js";
import { OrchestratorService, type SubmitResponse } from "../gen/pointsman/api/orchestrator/v1/orchestrator_pb.js";
import { Failure } from "./failure.js";

const TRIES = 8;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
const DEADLINE_MS = 20_000;

/** What `pointsman token --env` prints: the certificate to trust and the bearer token, as files. */
export interface Credentials {
  authority: string;
  token: string;
}

export function credentialsFromEnvironment(): Credentials {
  const { POINTSMAN_CLIENT_AUTHORITY: authority = "", POINTSMAN_CLIENT_TOKEN: token = "" } = process.env;
  return { authority, token };
}

export class Client {
  readonly runs: Stub<typeof OrchestratorService>;
  readonly agents: Stub<typeof AgentService>;

  constructor(readonly transport: Transport) {
    this.runs = createClient(OrchestratorService, transport);
    this.agents = createClient(AgentService, transport);
  }

  /** Connects to a server and shows it the credentials; without an authority there is no TLS, as towards an edge. */
  static connect(address: string, project: string, shown: Credentials): Client {
    const token = shown.token ? readFileSync(shown.token, "utf8").trim() : "";
    const inProject: Interceptor = (next) => (request) => {
      request.header.set("pointsman-project", project);
      if (token) request.header.set("authorization", `Bearer ${token}`);
      return next(request);
    };
    const ca = shown.authority ? readFileSync(shown.authority) : undefined;
    return new Client(
      createGrpcTransport({
        baseUrl: `${ca ? "https" : "http"}://${address}`,
        interceptors: [inProject],
        nodeOptions: ca ? { ca } : {},
      }),
    );
  }

  /** Starts a run; the same requestId twice starts it once. */
  submit(requestId: string, message: string): Promise<SubmitResponse> {
    return patiently((signal) => this.runs.submit({ requestId, message }, { signal }));
  }

  /** Every transition of a run to its end, each once and in order, over broken connections. */
  async *watch(runId: string, afterSeq = 0n): AsyncGenerator<Transition> {
    let pause = FIRST_PAUSE_MS;
    for (let attempt = 1; ; attempt++) {
      try {
        for await (const { transition } of this.runs.watchRun({ runId, afterSeq })) {
          if (!transition) continue;
          afterSeq = transition.seq;
          attempt = 0;
          pause = FIRST_PAUSE_MS;
          yield transition;
        }
        return;
      } catch (thrown) {
        const failure = Failure.from(thrown);
        const helps = failure.advice === "RETRY" || failure.advice === "RESUME";
        if (!helps || attempt >= TRIES) throw failure;
        await sleep(Math.max(pause, failure.retryAfterMs));
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }
  }
}

/** An idempotency key that nobody else has. */
export const newRequestId = (): string => randomUUID();

/** Calls until there is an answer; safe for mutations because every try carries the same requestId. */
export async function patiently<Answer>(call: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
  let pause = FIRST_PAUSE_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await call(AbortSignal.timeout(DEADLINE_MS));
    } catch (thrown) {
      const failure = Failure.from(thrown);
      if (failure.advice !== "RETRY" || attempt >= TRIES) throw failure;
      await sleep(Math.max(pause, failure.retryAfterMs));
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
  }
}
