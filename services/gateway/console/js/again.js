// @ts-check
// The same once more: a new run with the words, repository, proofs and limits of an old one.

import { call, change, ORCHESTRATOR } from "./api.js";

// What Submit takes, from a run as it is.
export function orderOf(run) {
  const words = run.intent;
  const commands = run.acceptance_criteria.filter((one) => /^V[0-9]+$/.test(one.id));
  const others = run.acceptance_criteria.filter((one) => !/^V[0-9]+$/.test(one.id));
  return {
    message: words,
    mode_override: "MODE_OVERRIDE_UNSPECIFIED",
    ...(run.repository ? { repository: run.repository } : {}),
    verify_commands: commands.map((one) => ({ arguments: one.verify_command })),
    acceptance_criteria: others,
    template: run.template,
    execution_mode: run.execution_mode,
    budget: run.budget,
    labels: run.labels,
  };
}

export async function again(line) {
  const { run } = await call(ORCHESTRATOR, "GetRun", { run_id: line.id });
  const answer = await change(ORCHESTRATOR, "Submit", orderOf(run));
  if (!answer.run) throw new Error("the router starts no run for these words");
  return answer.run;
}
