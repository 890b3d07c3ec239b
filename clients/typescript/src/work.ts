// The form of every kind of work. The evidence is real; the reviews let everything pass: write your own.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  EvidenceKind,
  EvidenceSchema,
  ResearchReportSchema,
  ReviewDecisionSchema,
  ReviewLevel,
  ReviewVerdict,
} from "../gen/pointsman/api/handoff/v1/handoff_pb.js";
import {
  ClaimStatus,
  type ResearchRequest,
  type StageRequest,
  StageResultSchema,
  VerificationReportSchema,
  type VerifyRequest,
} from "../gen/pointsman/api/handoff/v1/work_pb.js";
import type { Lease } from "../gen/pointsman/api/orchestrator/v1/agent_pb.js";
import { type Completion, keyOf } from "./agent.js";

const execute = promisify(execFile);

export async function exampleWork(lease: Lease): Promise<Completion> {
  const key = keyOf(lease);
  switch (lease.work.case) {
    case "stage":
      return { lease: key, result: { case: "stage", value: await stage(lease.work.value) } };
    case "research":
      return { lease: key, result: { case: "research", value: research(lease.work.value) } };
    case "review":
      return { lease: key, result: { case: "review", value: pass(ReviewLevel.EXECUTOR) } };
    case "debate":
      return { lease: key, result: { case: "review", value: pass(ReviewLevel.ORCHESTRATOR) } };
    case "verify":
      return { lease: key, result: { case: "verification", value: verify(lease.work.value) } };
    default:
      throw new Error(`this agent does not do ${lease.work.case}`);
  }
}

async function stage(asked: StageRequest): Promise<MessageInitShape<typeof StageResultSchema>> {
  const ending = { case: "route" as const, value: { verdict: "PASS", route: "NEXT" } };
  if (asked.stage !== "DEV") {
    return { ending, reportMd: { body: { case: "text", value: "# Report\n\nNothing to complain about.\n" } } };
  }
  const proof = await run("E1", process.execPath, "--version");
  const claims = (asked.handoff?.acceptanceCriteria ?? []).map((criterion, place) => ({
    id: `K${place + 1}`,
    statement: criterion.statement,
    criterionIds: [criterion.id],
    evidenceIds: ["E1"],
  }));
  return { ending, coderResult: { claims, evidence: [proof] } };
}

/** Runs a command and keeps what it proves. */
export async function run(
  id: string,
  program: string,
  ...args: string[]
): Promise<MessageInitShape<typeof EvidenceSchema>> {
  const { stdout } = await execute(program, args);
  const digest = createHash("sha256").update(stdout).digest("hex");
  return { id, kind: EvidenceKind.COMMAND, command: [program, ...args], digest, excerpt: stdout.slice(0, 1000) };
}

function research(asked: ResearchRequest): MessageInitShape<typeof ResearchReportSchema> {
  const text = (value: string) => ({ body: { case: "text" as const, value } });
  return {
    slot: asked.slot?.id ?? "",
    summaryMd: text(`# ${asked.slot?.question}\n\nNothing is in the way.\n`),
    memoryJsonl: text('{"note":"nothing to remember"}\n'),
    confidence: 0.9,
  };
}

function pass(reviewLevel: ReviewLevel): MessageInitShape<typeof ReviewDecisionSchema> {
  return { decision: ReviewVerdict.PASS, reviewLevel };
}

function verify(asked: VerifyRequest): MessageInitShape<typeof VerificationReportSchema> {
  const tasks = asked.tasks.map((task) => ({
    taskId: task.taskId,
    accepted: true,
    claims: (task.coderResult?.claims ?? []).map((claim) => ({ claimId: claim.id, status: ClaimStatus.SUPPORTED })),
    criteria: task.acceptanceCriteria
      .filter((criterion) => criterion.verifyCommand.length > 0)
      .map((criterion) => ({ criterionId: criterion.id, passed: true })),
  }));
  return { acceptedCommit: asked.acceptedCommit, tasks };
}
