// @ts-check
// What was claimed, beside what supports it, what the verifier found and who judged it how.

import { ago, chip, claimed, h, nothing, said } from "./dom.js";
import { plain, shortId, tone, word } from "./words.js";

const MOST_FILES = 500;

// The latest attempt at each task in full, earlier ones folded away below it.
export function claimsView(attempts) {
  if (attempts.length === 0) return [nothing("Nothing has been claimed yet.")];
  const byTask = new Map();
  for (const one of attempts) byTask.set(one.task_id, [one, ...(byTask.get(one.task_id) ?? [])]);
  return [...byTask.values()].map(([latest, ...earlier]) =>
    h("article", { class: "work", "data-task": latest.task_id }, attemptView(latest), earlierView(earlier)),
  );
}

function earlierView(earlier) {
  if (earlier.length === 0) return null;
  return h(
    "details",
    { class: "earlier" },
    h("summary", {}, earlier.length === 1 ? "1 earlier attempt" : `${earlier.length} earlier attempts`),
    earlier.map((one) => h("div", { class: "attempt" }, attemptView(one))),
  );
}

function attemptView(attempt) {
  const { work, finding } = attempt;
  const claims = work?.claims ?? [];
  return [
    h(
      "h3",
      {},
      chip(attempt.status, tone(attempt.status)),
      ` ${attempt.name} `,
      h("span", { class: "dim" }, about(attempt), attempt.started_at ? [", ", ago(attempt.started_at), " ago"] : null),
    ),
    claims.map((claim) => claimRow(claim, attempt)),
    claims.length ? null : h("p", { class: "dim" }, attempt.author ? "Nothing was claimed." : "No work was handed in."),
    criteria(attempt),
    (finding?.conflicts ?? []).length ? h("p", {}, chip("conflicts", "bad"), ` ${finding.conflicts.join(", ")}`) : null,
    judgements(attempt.judgements),
    setbacks(attempt.setbacks),
    files(work?.changed_files ?? []),
  ];
}

function about({ task_id: task, attempt, author }) {
  return [task, attempt > 1 ? `attempt ${attempt}` : "", author ? `by ${author}` : ""].filter(Boolean).join(", ");
}

function claimRow(claim, attempt) {
  const { work, finding, status: outcome } = attempt;
  const evidence = work.evidence.filter((one) => claim.evidence_ids.includes(one.id));
  const found = finding?.claims.find((one) => one.claim_id === claim.id);
  const open = outcome === "running" ? "not verified yet" : "not verified";
  const status = found ? word(found.status) : evidence.length ? open : "MISSING";
  return h(
    "div",
    { class: "claim", "data-claim": claim.id, id: `claim-${attempt.task_id}-${attempt.attempt}-${claim.id}` },
    h(
      "div",
      { class: "said" },
      h(
        "p",
        {},
        found ? chip(plain(status), tone(status)) : claimed(evidence.length ? status : "no evidence"),
        " ",
        said(claim.statement),
      ),
      h(
        "p",
        { class: "dim" },
        `claim ${claim.id}`,
        claim.criterion_ids.length ? `, for ${claim.criterion_ids.join(", ")}` : "",
      ),
      found?.detail ? h("p", { class: "dim" }, found.detail) : null,
    ),
    h("div", { class: "proof" }, evidence.length ? evidence.map((one) => evidenceCard(one)) : nothing("no evidence")),
  );
}

// ours: the verifier took it itself; what an agent says is never drawn like that.
function evidenceCard(one, ours = false) {
  const kind = word(one.kind);
  const subject = one.command.join(" ") || one.path || one.url;
  const ended = `exit ${one.exit_code ?? 0}`;
  const exit =
    kind !== "COMMAND"
      ? null
      : ours
        ? chip(`we ran it: ${ended}`, one.exit_code ? "bad" : "good")
        : claimed(`agent says ${ended}`);
  const marks = [
    one.digest && `sha256 ${shortId(one.digest)}`,
    one.tree_hash && `tree ${shortId(one.tree_hash)}`,
    one.captured_at,
  ];
  return h(
    "div",
    { class: "evidence" },
    h("p", {}, chip(plain(kind), "dim"), " ", exit, " ", h("code", {}, subject)),
    one.excerpt ? h("pre", { tabindex: "0" }, one.excerpt) : null,
    h("p", { class: "dim" }, marks.filter(Boolean).join(" · ")),
  );
}

// Every criterion of the plan, with what the verifier's own run of it gave.
function criteria({ acceptance_criteria: wanted, finding }) {
  const found = new Map((finding?.criteria ?? []).map((one) => [one.criterion_id, one]));
  if (wanted.length === 0 && found.size === 0) return null;
  const known = wanted.length ? wanted : [...found.keys()].map((id) => ({ id, statement: "", required: true }));
  return h(
    "ul",
    { class: "criteria" },
    known.map((one) => criterion(one, found.get(one.id))),
  );
}

function criterion({ id, statement, required }, found) {
  const mark = found
    ? chip(found.passed ? "passed" : "failed", found.passed ? "good" : "bad")
    : chip(required ? "required" : "wanted", "dim");
  return h(
    "li",
    { "data-criterion": id },
    mark,
    ` ${id} ${statement} `,
    found?.detail ? h("span", { class: "dim" }, found.detail) : null,
    found?.evidence ? evidenceCard(found.evidence, true) : null,
  );
}

function judgements(all) {
  if (all.length === 0) return null;
  return h(
    "ul",
    { class: "judgements" },
    all.map((one) =>
      h(
        "li",
        {},
        chip(
          `${one.judge}: ${one.verdict}`,
          one.verdict === "rejected" ? "bad" : one.judge === "verifier" && one.verdict === "accepted" ? "good" : "said",
        ),
        " ",
        one.reason ? said(one.reason) : "",
      ),
    ),
  );
}

function setbacks(all) {
  if (all.length === 0) return null;
  return h(
    "details",
    {},
    h("summary", {}, all.length === 1 ? "1 setback" : `${all.length} setbacks`),
    h(
      "ul",
      {},
      all.map((one) => h("li", {}, `${one.stage} ${one.agent_id}: `, h("span", { class: "dim" }, one.reason))),
    ),
  );
}

function files(changed) {
  if (changed.length === 0) return null;
  return h(
    "details",
    {},
    h("summary", {}, changed.length === 1 ? "1 changed file" : `${changed.length} changed files`),
    h(
      "ul",
      {},
      changed
        .slice(0, MOST_FILES)
        .map((one) => h("li", {}, h("code", {}, one.path), h("span", { class: "dim" }, ` ${plain(one.change)}`))),
    ),
  );
}
