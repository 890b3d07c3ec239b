// The top of a run's page: what was wanted, where it stands, what it asks, what it spent.

import { answerChoices, askCancel, askChange, choices } from "./actions.js";
import { ago, chip, gauge, h } from "./dom.js";
import { clock, ENDED, gradeName, limits, plain, tone, word } from "./words.js";

const LONG = 160;

export function headView(run) {
  const state = word(run.state);
  return [
    h(
      "div",
      { class: "bar" },
      h("p", { class: "dim id" }, run.id),
      ENDED.has(state) ? null : h("div", { class: "actions" }, buttons(run)),
    ),
    h("h1", {}, chip(state, tone(state)), gradeChip(run.grade), " ", wanted(run.intent)),
    h(
      "p",
      { class: "dim" },
      `Submitted ${clock(run.created_at)}, `,
      ago(run.created_at),
      " ago ",
      Object.entries(run.labels).map(([key, value]) => chip(`${key}=${value}`, "dim")),
    ),
    run.question ? question(run) : null,
    risks(run.residual_risks),
    h("dl", { class: "facts" }, waits(run), limits(run).map(spent), fact("Confidence", run.confidence.toFixed(2))),
    names(run),
  ];
}

function gradeChip(grade) {
  const name = gradeName(grade);
  return name ? [" ", chip(name, tone(name))] : null;
}

function wanted(intent) {
  const long = intent.length > LONG;
  return h("span", { class: long ? "wanted long" : "wanted", tabindex: long ? "0" : undefined }, intent);
}

function buttons(run) {
  return [
    h("button", { type: "button", onclick: () => askChange(run) }, "change the requirement"),
    h("button", { type: "button", class: "danger", onclick: () => askCancel(run) }, "cancel"),
  ];
}

function question(run) {
  return h(
    "div",
    { class: "asked", role: "note" },
    h("p", {}, chip(plain(run.question.kind), "ask"), " ", h("strong", {}, run.question.text)),
    choices(answerChoices(run, "primary")),
  );
}

function risks(all) {
  if (all.length === 0) return null;
  return h(
    "details",
    { class: "risks", open: true },
    h("summary", {}, all.length === 1 ? "1 residual risk" : `${all.length} residual risks`),
    h(
      "ul",
      {},
      all.map((risk) => h("li", {}, chip(plain(risk.severity), tone(risk.severity)), ` ${risk.statement}`)),
    ),
  );
}

function fact(name, ...value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function waits(run) {
  const wait = run.waiting_for;
  if (!wait) return fact("Ended", run.end_reason || plain(run.state));
  const what = run.question ? wait.who : `${wait.who}: ${wait.action}`;
  return fact("Waits for", chip(plain(wait.kind), tone(wait.kind)), ` ${what}, `, ago(wait.since));
}

function spent({ name, used, limit, share }) {
  return fact(name, `${used} `, h("span", { class: "dim" }, `of ${limit}`), gauge(share));
}

function names(run) {
  const known = [
    ["Epic", run.epic_id],
    ["Session", run.session_id],
    ["Accepted commit", run.accepted_commit],
    ["Tokens", Number(run.usage?.tokens ?? 0) ? run.usage.tokens : ""],
    ["Cost in millionths", Number(run.usage?.cost_micros ?? 0) ? run.usage.cost_micros : ""],
    ["Trace", run.traceparent],
  ].filter(([, value]) => value);
  return h(
    "details",
    { class: "names" },
    h("summary", {}, "Names"),
    h(
      "dl",
      {},
      known.map(([name, value]) => [h("dt", {}, name), h("dd", {}, h("code", {}, value))]),
    ),
  );
}
