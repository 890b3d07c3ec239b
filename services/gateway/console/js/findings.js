// @ts-check
// What is known of an attempt: the verifier's word, the agent's, and what was run.

import { chip, h, nothing, said } from "./dom.js";
import { gradeName, plain, tone, word } from "./words.js";

// What became of an attempt; solid green is kept for what was proven.
export function statusChip(attempt) {
  const proven = attempt.status === "accepted" && gradeName(attempt.finding?.proof?.grade) === "PROVEN";
  return chip(proven ? "accepted, PROVEN" : plain(attempt.status), proven ? "good" : tone(attempt.status));
}

// true and false are the verifier's word; undefined: nobody has proven it either way. A command that failed as it did on
// the base is excused, which proves nothing.
export function provenBy(attempt, criterionId) {
  const found = attempt.finding?.criteria.find((one) => one.criterion_id === criterionId);
  if (!found) return undefined;
  return found.passed && isExcused(found) ? undefined : found.passed;
}

function isExcused(found) {
  return found.passed && Boolean(found.evidence?.exit_code);
}

// What the agent's own evidence says about a criterion, never more than its word.
export function evidenceFor(attempt, criterionId) {
  const claims = (attempt.work?.claims ?? []).filter((claim) => claim.criterion_ids.includes(criterionId));
  const ids = new Set(claims.flatMap((claim) => claim.evidence_ids));
  return (attempt.work?.evidence ?? [])
    .filter((one) => ids.has(one.id))
    .slice(0, 4)
    .map((one) => (word(one.kind) === "COMMAND" ? `exit ${one.exit_code ?? 0}` : plain(one.kind)));
}

// Files that the verifier found changed and that were not handed in.
export function otherFiles(attempt) {
  const handedIn = new Set((attempt.work?.changed_files ?? []).map((one) => one.path));
  return (attempt.finding?.proof?.changed_files ?? []).map((one) => one.path).filter((path) => !handedIn.has(path));
}

// What became of the attempt: each reason once.
export function verdict(attempt) {
  const grade = gradeName(attempt.finding?.proof?.grade);
  const proven = attempt.finding?.proof?.reasons ?? [];
  // The verifier's judgement says again what the proof says.
  const judged = attempt.judgements.filter((one) => !(proven.length && one.judge === "verifier"));
  const reasons = [...new Set([...proven, ...judged.map((one) => one.reason)])].filter(
    (one, _place, all) => one && !all.some((other) => other !== one && other.includes(one)),
  );
  const questions = attempt.finding?.proof?.questions ?? [];
  if (!grade && reasons.length === 0 && questions.length === 0) return null;
  const refused = attempt.status === "rejected";
  return h(
    "div",
    { class: `verdict ${refused ? "refused" : ""}`, id: "verdict" },
    refused ? h("strong", {}, "Caught and refused. ") : grade ? chip(grade, tone(grade)) : null,
    reasons.slice(0, 6).map((text) => h("p", {}, said(text))),
    questions.map((text) => h("p", {}, "Somebody has to say yes: ", said(text))),
  );
}

// What we ran ourselves, command by command and test by test, over which base, and what judges that the author changed.
export function commandsView(proof) {
  if (!proof || proof.commands.length + proof.protected_changes.length === 0) return null;
  const count = proof.commands.reduce((sum, one) => sum + one.executed, 0);
  const reused = proof.reused ? ", in the TEST stage" : "";
  return h(
    "details",
    { class: "ran" },
    h("summary", {}, `We ran ${count} tests with the base's own files, isolated by ${proof.isolation}${reused}`),
    h("p", { class: "dim" }, `Base ${proof.base_commit.slice(0, 12)}, tree ${proof.tree_hash.slice(0, 12)}`),
    proof.commands.map(commandView),
    proof.protected_changes.map(protectedView),
    proof.held_out_output ? h("p", {}, "What held-out checks printed is kept for judges.") : null,
  );
}

function commandView(one) {
  return [
    h("p", {}, h("code", {}, one.command.join(" ")), ` by ${one.adapter}: exit ${one.exit_code ?? 0}`),
    h("ul", {}, one.tests.slice(0, 40).map(testView)),
    one.flaky.map((id) => h("p", {}, "Failed once, passed again: ", h("code", {}, id))),
  ];
}

function testView(one) {
  return h(
    "li",
    {},
    chip(plain(one.outcome), word(one.outcome) === "PASSED" ? "good" : "bad"),
    h("code", {}, one.id),
    h("span", { class: "dim" }, ` before: ${plain(one.before)}`),
    one.message ? h("pre", { class: "dim" }, said(one.message)) : null,
  );
}

function protectedView(one) {
  const keys = one.keys.length ? `, keys ${one.keys.join(", ")}` : "";
  const why = ` ${plain(one.change)} (${one.kind}${keys}: ${one.why})`;
  return h("p", {}, "The base's counts: ", h("code", {}, said(one.path)), said(why));
}

export function filesView(attempt) {
  const files = attempt.work?.changed_files ?? [];
  if (files.length === 0) return nothing("No file was changed.");
  return [
    h("p", { class: "dim" }, "This work came without a readable diff; its files:"),
    h(
      "ul",
      { class: "files" },
      files.slice(0, 500).map((one) => h("li", {}, h("code", {}, one.path), ` ${plain(one.change)}`)),
    ),
  ];
}

export function wantedView(run) {
  if (run.acceptance_criteria.length === 0) return null;
  return [
    h("h3", {}, "What must hold"),
    h(
      "ul",
      { class: "criteria" },
      run.acceptance_criteria.map((one) =>
        h(
          "li",
          {},
          h("span", { class: "mark open" }, "?"),
          h("div", {}, h("strong", {}, `${one.id} `), said(one.statement)),
        ),
      ),
    ),
  ];
}

// What came of running it ourselves; solid green only where it succeeded.
export function oursChip(found) {
  const code = found.evidence?.exit_code ?? 0;
  const isRefused = !found.passed && code === 0;
  const text = isRefused ? "does not hold" : found.evidence ? `exit ${code}` : found.passed ? "passed" : "failed";
  if (isExcused(found)) return chip(`we ran it: ${text}, as on the base`, "ask");
  return h("span", { class: `chip ours ${found.passed ? "good" : "bad"}` }, `we ran it: ${text}`);
}
