// @ts-check
// The top of a run's page: what was wanted, what it asks, what was proven, where it stands, what it spent.

import { askCancel, askChange } from "./actions.js";
import { storyLink } from "./again.js";
import { ago, chip, gauge, h, link, said } from "./dom.js";
import { rail } from "./phases.js";
import { isAboutPlan, questionView } from "./question.js";
import { ATTENTION, ENDED, limits, plain, stateWord, tone, word } from "./words.js";

const LONG = 160;

export function headView(run) {
  const asks = word(run.attention);
  return [
    h("div", { class: "bar" }, h("p", { class: "dim id" }, run.id), h("div", { class: "actions" }, buttons(run))),
    h("h1", {}, chip(ATTENTION[asks] ?? stateWord(run.state), tone(asks)), " ", wanted(run.intent)),
    h("p", { class: "why" }, why(run), " ", storyLink(run)),
    grades(run),
    rail(run),
    run.question && !isAboutPlan(run.question) && word(run.question.kind) !== "ACCEPTANCE" ? questionView(run) : null,
    risks(run.residual_risks),
    names(run),
  ];
}

// What the tasks are worth: only what the verifier proved is solid.
export function grades(run) {
  const {
    tasks = 0,
    proven = 0,
    unbroken = 0,
    on_word: onWord = 0,
    caught = 0,
    caught_then_proven: thenProven = 0,
    forced = 0,
  } = run.grades ?? {};
  const then = caught && thenProven === caught ? ", then proven" : thenProven ? `, ${thenProven} then proven` : "";
  const part = (name, value, kind) => h("li", { class: kind }, h("span", {}, name), ` ${value}`);
  return h(
    "ul",
    { class: "grades", id: "grades", "aria-label": "What was proven" },
    part("PROVEN", `${proven}/${tasks}`, proven && proven === tasks ? "solid" : proven ? "some" : ""),
    part("UNBROKEN", unbroken, unbroken ? "some" : ""),
    part("ON WORD", onWord, onWord ? "word" : ""),
    part("CAUGHT", `${caught}${then}`, caught ? "caught" : ""),
    part("FORCED", forced, forced ? "caught" : ""),
  );
}

function wanted(intent) {
  const long = intent.length > LONG;
  return h("span", { class: long ? "wanted long" : "wanted", tabindex: long ? "0" : undefined }, said(intent));
}

function buttons(run) {
  const ended = ENDED.has(word(run.state));
  return [
    ended ? link(`/new?from=${encodeURIComponent(run.id)}`, h("span", { class: "button" }, "Run again")) : null,
    ended ? null : h("button", { type: "button", onclick: () => askChange(run) }, "change the requirement"),
    ended ? null : h("button", { type: "button", class: "danger", onclick: () => askCancel(run) }, "cancel"),
  ];
}

// Whom it waits for, or how it ended: said once.
function why(run) {
  const wait = run.waiting_for;
  const labels = Object.entries(run.labels).map(([key, value]) => chip(`${key}=${value}`, "dim"));
  const submitted = h("span", { class: "dim" }, " submitted ", ago(run.created_at), " ago ");
  if (!wait)
    return [
      said(run.end_reason || ""),
      h("span", { class: "dim" }, " ended ", ago(run.ended_at ?? run.updated_at), " ago,"),
      submitted,
      labels,
    ];
  const kind = word(wait.kind);
  if (run.question)
    return [h("span", { class: "dim" }, "asked ", ago(run.question.asked_at), " ago,"), submitted, labels];
  if (kind === "AGENT" && wait.holder)
    return [said(wait.holder), " is at work, heard of ", ago(wait.heard_at), " ago;", submitted, labels];
  if (kind === "AGENT")
    return [
      wait.agents_able ? `${wait.agents_able} can take it: ` : "nobody who is present can ",
      h("code", {}, wait.who),
      wait.agents_able ? "" : [", see ", link("/agents", "agents")],
      submitted,
      labels,
    ];
  return [`waits for ${plain(kind)} ${wait.who}, `, ago(wait.since), submitted, labels];
}

function risks(all) {
  if (all.length === 0) return null;
  return h(
    "details",
    { class: "risks" },
    h("summary", {}, all.length === 1 ? "1 residual risk" : `${all.length} residual risks`),
    h(
      "ul",
      {},
      all.map((risk) => h("li", {}, chip(plain(risk.severity), tone(risk.severity)), " ", said(risk.statement))),
    ),
  );
}

function fact(name, ...value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function spent({ name, used, held, limit, share }) {
  const running = held ? `, ${held} held by running work` : "";
  return fact(name, `${used} `, h("span", { class: "dim" }, `of ${limit}${running}`), gauge(share));
}

function names(run) {
  const known = [
    ["State", word(run.state)],
    ["Epic", run.epic_id],
    ["Session", run.session_id],
    ["Again of", run.origin?.run_id],
    ["Accepted commit", run.accepted_commit],
    ["Tokens", Number(run.usage?.tokens ?? 0) ? run.usage.tokens : ""],
    ["Cost in millionths", Number(run.usage?.cost_micros ?? 0) ? run.usage.cost_micros : ""],
    ["Trace", run.traceparent],
  ].filter(([, value]) => value);
  return h(
    "details",
    { class: "names" },
    h("summary", {}, "Spent and names"),
    h("dl", { class: "facts" }, limits(run).map(spent), fact("Confidence", run.confidence.toFixed(2))),
    h(
      "dl",
      {},
      known.map(([name, value]) => [h("dt", {}, name), h("dd", {}, h("code", {}, value))]),
    ),
  );
}
