// Plays clients/scenario.json, the same for clients in every language.
import assert from "node:assert/strict";
import { createRegistry, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { ErrorReason } from "../gen/pointsman/api/common/v1/common_pb.js";
import { Capability } from "../gen/pointsman/api/orchestrator/v1/assignment_pb.js";
import { file_pointsman_api_orchestrator_v1_mock } from "../gen/pointsman/api/orchestrator/v1/mock_pb.js";
import { file_pointsman_api_orchestrator_v1_orchestrator } from "../gen/pointsman/api/orchestrator/v1/orchestrator_pb.js";
import { RunState } from "../gen/pointsman/api/orchestrator/v1/run_pb.js";
import { Agent, type Completion } from "./agent.js";
import { type Client, newRequestId } from "./client.js";
import { type Advice, Failure } from "./failure.js";
import { exampleWork } from "./work.js";

export interface Refusal {
  name: string;
  method: string;
  request: JsonValue;
  code: string;
  reason: string;
  advice: Advice;
  field?: string;
}

export interface Scenario {
  message: string;
  agents: { name: string; role: string; capabilities: string[] }[];
  break_the_watch_after: number;
  end: string;
  second_completion: string;
  refusals: Refusal[];
  advice: Refusal[];
}

export interface Shown {
  run_id: string;
  end: string;
  seqs: number[];
  claims: number;
}

const REGISTRY = createRegistry(
  file_pointsman_api_orchestrator_v1_orchestrator,
  file_pointsman_api_orchestrator_v1_mock,
);

/** Plays the scenario against a real server; throws what is not as it has to be. */
export async function conform(connectAs: (role: string) => Client, scenario: Scenario): Promise<Shown> {
  const client = connectAs("operator");
  const requestId = newRequestId();
  const runId = (await client.submit(requestId, scenario.message)).run?.id ?? "";
  assert.equal((await client.submit(requestId, scenario.message)).run?.id, runId, "the same submission is one run");
  const stop = new AbortController();
  const second = Promise.any(scenario.agents.map((part) => startAgent(connectAs(part.role), part, stop.signal)));
  const seqs = await watchBroken(client, runId, scenario.break_the_watch_after);
  assert.equal(await second, scenario.second_completion);
  const { run } = await client.runs.getRun({ runId });
  const end = `RUN_STATE_${RunState[run?.state ?? 0]}`;
  assert.equal(end, scenario.end, run?.endReason);
  const { delivery } = await client.runs.getDelivery({ runId });
  const claims = (delivery?.deliverables ?? []).reduce((sum, item) => sum + item.claims.length, 0);
  assert.ok(claims > 0, "what was claimed is delivered");
  for (const wanted of scenario.refusals) {
    const text = JSON.stringify(wanted.request).replaceAll("${run_id}-submit", requestId).replaceAll("${run_id}", runId);
    await refused(client, wanted, JSON.parse(text) as JsonValue);
  }
  stop.abort();
  return { run_id: runId, end, seqs, claims };
}

/** Lets an agent work beside the scenario; its first result is handed in a second time, and ends as this resolves. */
function startAgent(client: Client, part: Scenario["agents"][number], stop: AbortSignal): Promise<string> {
  const capabilities = part.capabilities.map(
    (name) => Capability[name.replace("CAPABILITY_", "") as keyof typeof Capability],
  );
  const agent = new Agent(client, `${part.name}-${newRequestId()}`, capabilities, exampleWork);
  return new Promise((resolve, reject) => {
    agent.handedIn = async (completion: Completion) => {
      const outcome = await agent.complete(completion);
      agent.handedIn = undefined;
      resolve(`ERROR_REASON_${ErrorReason[outcome.reason]}`);
    };
    agent.run(stop).catch(reject);
  });
}

/** Watches to the end, leaving its own stream once and coming back after the last seq. */
async function watchBroken(client: Client, runId: string, after: number): Promise<number[]> {
  const seqs: number[] = [];
  for await (const transition of client.watch(runId)) {
    seqs.push(Number(transition.seq));
    if (seqs.length === after) break;
  }
  for await (const transition of client.watch(runId, BigInt(after))) seqs.push(Number(transition.seq));
  assert.deepEqual(seqs, seqs.map((_, place) => place + 1), "watched without gap or repeat");
  return seqs;
}

/** Makes a call by its name and compares how it fails. */
async function refused(client: Client, wanted: Refusal, request: JsonValue): Promise<void> {
  const [serviceName = "", methodName = ""] = wanted.method.split("/");
  const service = REGISTRY.getService(serviceName);
  const method = service?.methods.find((each) => each.name === methodName);
  if (!service || !method) throw new Error(`no such method: ${wanted.method}`);
  const stub = createClient(service, client.transport) as unknown as Record<string, (message: unknown) => Promise<unknown>>;
  const failure = await stub[method.localName]!(fromJson(method.input, request)).then(
    () => assert.fail(`${wanted.name}: was not refused`),
    (thrown: unknown) => Failure.from(thrown),
  );
  const { reason, advice } = failure;
  assert.deepEqual({ code: codeName(failure.code), reason, advice }, { code: wanted.code, reason: wanted.reason, advice: wanted.advice }, wanted.name);
  if (wanted.field) assert.equal(failure.fields[0], wanted.field, wanted.name);
}

/** FAILED_PRECONDITION for FailedPrecondition. */
export function codeName(code: Code): string {
  return (Code[code] ?? "").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
