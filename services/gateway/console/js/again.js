// @ts-check
// The same once more: a new run with the words, repository, proofs and limits of an old one.

import { change, ORCHESTRATOR } from "./api.js";
import { chip, link } from "./dom.js";

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

// A new run on the old one's own terms, linked to it.
export async function again(line) {
  return (await change(ORCHESTRATOR, "Rerun", { run_id: line.id })).run;
}

// The runs that did the same before and after, as a list of its own.
export function storyLink(run) {
  if (!run.origin) return null;
  const path = `/runs?q=${encodeURIComponent(run.origin.first_run_id)}`;
  return link(path, chip(`again, from ${run.origin.point}`.slice(0, 40), "dim"));
}
