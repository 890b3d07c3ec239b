// What was claimed, beside what supports it and what the verifier and the reviewer said.

import { chip, h } from "./dom.js";
import { parsed, plain, shortId, snake, tone, word } from "./words.js";

// The latest work of each task and every word about it, from the journal.
export function gathered(transitions) {
  const works = new Map();
  for (const one of transitions) {
    const data = parsed(one.payload_json);
    if (one.event === "work_handed_in")
      works.set(data.task_id, {
        task: data.task_id,
        author: data.work.author,
        result: snake(parsed(data.work.document)),
        findings: new Map(),
        criteria: [],
        verdicts: [],
      });
    else if (one.event === "task_judged") works.get(data.task_id)?.verdicts.push(data);
    else if (one.event === "wave_verified") verified(works, snake(parsed(data.document)));
  }
  return [...works.values()];
}

function verified(works, report) {
  for (const finding of report.tasks ?? []) {
    const work = works.get(finding.task_id);
    if (!work) continue;
    for (const claim of finding.claims ?? []) work.findings.set(claim.claim_id, claim);
    work.criteria = finding.criteria ?? [];
  }
}

export function claimsView(transitions) {
  const works = gathered(transitions);
  if (works.length === 0) return [h("p", { class: "empty" }, "Nothing has been claimed yet.")];
  return works.map((work) =>
    h(
      "article",
      { class: "work", "data-task": work.task },
      h("h3", {}, "Task ", h("code", {}, work.task), h("span", { class: "dim" }, ` by ${work.author}`)),
      (work.result.claims ?? []).map((claim) => claimRow(claim, work)),
      work.criteria.length ? criteriaRow(work.criteria) : null,
      work.verdicts.length ? h("p", {}, "Said about it: ", work.verdicts.map(verdict)) : null,
      files(work.result.changed_files ?? []),
    ),
  );
}

function claimRow(claim, work) {
  const evidence = (work.result.evidence ?? []).filter((one) => (claim.evidence_ids ?? []).includes(one.id));
  const finding = work.findings.get(claim.id);
  const status = finding ? word(finding.status) : evidence.length ? "not verified yet" : "MISSING";
  return h(
    "div",
    { class: "claim", "data-claim": claim.id },
    h(
      "div",
      { class: "said" },
      h("p", {}, chip(plain(status), finding || !evidence.length ? tone(status) : "dim"), " ", claim.statement),
      h(
        "p",
        { class: "dim" },
        `claim ${claim.id}`,
        (claim.criterion_ids ?? []).length ? `, for ${claim.criterion_ids.join(", ")}` : "",
      ),
      finding?.detail ? h("p", { class: "dim" }, finding.detail) : null,
    ),
    h(
      "div",
      { class: "proof" },
      evidence.length ? evidence.map(evidenceCard) : h("p", { class: "empty" }, "no evidence"),
    ),
  );
}

function evidenceCard(one) {
  const kind = word(one.kind);
  const subject = one.command?.join(" ") || one.path || one.url || "";
  const exit = kind === "COMMAND" ? chip(`exit ${one.exit_code ?? 0}`, one.exit_code ? "bad" : "good") : null;
  return h(
    "div",
    { class: "evidence" },
    h("p", {}, chip(plain(kind), "dim"), " ", exit, " ", h("code", {}, subject)),
    one.excerpt ? h("pre", {}, one.excerpt) : null,
    h(
      "p",
      { class: "dim" },
      [
        one.digest && `sha256 ${shortId(one.digest)}`,
        one.tree_hash && `tree ${shortId(one.tree_hash)}`,
        one.captured_at,
      ]
        .filter(Boolean)
        .join(" · "),
    ),
  );
}

function criteriaRow(criteria) {
  return h(
    "ul",
    { class: "criteria" },
    criteria.map((one) =>
      h(
        "li",
        {},
        chip(one.passed ? "passed" : "failed", one.passed ? "good" : "bad"),
        ` criterion ${one.criterion_id} `,
        one.detail ? h("span", { class: "dim" }, one.detail) : null,
      ),
    ),
  );
}

function verdict(one) {
  const text =
    one.accepted === true
      ? "accepts"
      : one.accepted === false
        ? one.replan
          ? "asks for a new plan"
          : "rejects"
        : "leaves it open";
  return [
    chip(`${one.judge} ${text}`, one.accepted === true ? "good" : one.accepted === false ? "bad" : "dim"),
    one.reason ? h("span", { class: "dim" }, ` ${one.reason} `) : " ",
  ];
}

function files(changed) {
  if (changed.length === 0) return null;
  return h(
    "details",
    {},
    h("summary", {}, `${changed.length} changed files`),
    h(
      "ul",
      {},
      changed
        .slice(0, 500)
        .map((one) => h("li", {}, h("code", {}, one.path), h("span", { class: "dim" }, ` ${plain(one.change)}`))),
    ),
  );
}
