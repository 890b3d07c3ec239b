// @ts-check
// A new run: the words with the router's decision under them, the repository, who plays what, proofs, what must hold,
// the budget.

import { orderOf } from "./again.js";
import { AGENTS, all, call, change, ORCHESTRATOR, ROUTER } from "./api.js";
import { quoted, words } from "./commandline.js";
import { title } from "./counts.js";
import { crewOf, crewView } from "./crew.js";
import { chip, h, link, replace } from "./dom.js";
import { plain, shortId, word } from "./words.js";

const PAUSE = 300;

export async function show(main, { signal, go }) {
  title("New run");
  const from = new URLSearchParams(location.search).get("from");
  const known = { message: "", verify_commands: [], acceptance_criteria: [], template: "", budget: {}, labels: {} };
  /** @type {any} */
  const old = from ? orderOf((await call(ORCHESTRATOR, "GetRun", { run_id: from })).run) : known;
  if (signal.aborted) return;
  const decision = h("div", { id: "decision", "aria-live": "polite" });
  const message = h(
    "textarea",
    {
      id: "message",
      name: "message",
      rows: 5,
      maxlength: 65536,
      required: true,
      placeholder: "fix the failing test in tests/test_api.py",
    },
    old.message,
  );
  const repository = h("select", { id: "repository", name: "repository" }, h("option", { value: "" }, "no repository"));
  const crew = h("div", {});
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const form = h(
    "form",
    { class: "new-run block" },
    labelled("message", "What is wanted, in your own words", message),
    decision,
    labelled("repository", "Repository (those that agents who are present have)", repository),
    commitField(old),
    h("fieldset", {}, h("legend", {}, "Who plays what"), crew, terms()),
    area(
      "verify",
      "Proof: commands that have to succeed, one in a line",
      old.verify_commands.map((one) => quoted(one.arguments)),
      "make test",
    ),
    area(
      "holds",
      "What must hold besides, one in a line",
      old.acceptance_criteria.map((one) => one.statement),
      "no option is renamed",
    ),
    limits(old),
    problem,
    h(
      "div",
      { class: "actions" },
      h("button", { type: "submit", class: "primary", id: "start" }, "Start"),
      link("/runs", h("span", { class: "button" }, "Back")),
    ),
  );
  form.addEventListener("submit", (event) => submit(event, { form, old, problem, go }));
  previewed(message, decision, signal);
  replace(main, h("h1", {}, from ? "Run again" : "New run"), form);
  message.focus();
  await present({ repository, crew, chosen: old.repository?.id ?? "", signal });
}

// What is asked of the crew.
function terms() {
  const check = (name, text) => h("label", {}, h("input", { type: "checkbox", id: name, name }), ` ${text}`);
  return h(
    "div",
    { class: "row" },
    number("parallel", "Tasks at the same time at the most", ""),
    check("review_plan", "ask me about the plan before the work begins"),
  );
}

function limits(old) {
  return h(
    "div",
    { class: "row" },
    number("assignments", "Agents started at the most", old.budget?.assignments ?? ""),
    number("cost", "Cost at the most", old.budget?.cost_micros ? Number(old.budget.cost_micros) / 1e6 : ""),
    labelled(
      "template",
      "Pipeline",
      h("input", { id: "template", name: "template", value: old.template ?? "", placeholder: "quick-dev" }),
    ),
  );
}

function labelled(id, text, input) {
  return h("p", { class: "field" }, h("label", { for: id }, text), input);
}

function area(id, text, lines, placeholder) {
  return labelled(id, text, h("textarea", { id, name: id, rows: 2, placeholder }, lines.join("\n")));
}

function number(id, text, value) {
  return labelled(id, text, h("input", { id, name: id, type: "number", min: "0", step: "any", value: String(value) }));
}

function commitField(old) {
  return labelled("commit", "Commit to start from (needed with a repository)", [
    h("datalist", { id: "commits" }),
    h("input", {
      id: "commit",
      name: "commit",
      list: "commits",
      value: old.repository?.base_commit ?? "",
      pattern: "[0-9a-f]{40}([0-9a-f]{24})?",
      placeholder: "git rev-parse HEAD",
    }),
  ]);
}

// What the router would do with these words; nothing is stored for it.
function previewed(message, decision, signal) {
  let timer = 0;
  const look = async () => {
    const text = message.value.trim();
    if (!text || signal.aborted) return replace(decision);
    const { decision: found } = await call(ROUTER, "Preview", { message: { text } }, signal).catch(() => ({}));
    if (!found || message.value.trim() !== text) return decision;
    const acts = word(found.mode) === "ACTION";
    const why = found.triggers.map((one) => chip(`${plain(one.kind)}: ${one.name}`, "busy"));
    return replace(
      decision,
      h(
        "p",
        {},
        chip(acts ? "starts a run" : "answers only", acts ? "good" : "ask"),
        ` ${plain(found.confidence)}, goes to ${plain(found.route)}${word(found.debate) === "NONE" ? "" : `, ${plain(found.debate)}`} `,
        why,
      ),
    );
  };
  message.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
  look();
}

// The repositories that agents who are present have, and who of them would play what.
async function present({ repository, crew, chosen, signal }) {
  const agents = await all(AGENTS, "ListAgents", {}, "agents").catch(() => []);
  if (signal.aborted) return;
  const there = agents.filter((one) => word(one.state) !== "LOST");
  const offers = new Map(there.flatMap((one) => one.repositories).map((one) => [one.id, one]));
  const ids = new Set(there.flatMap((one) => one.repository_ids));
  if (chosen) ids.add(chosen);
  for (const id of ids)
    repository.append(h("option", { value: id, selected: id === chosen }, repositoryName(id, offers.get(id))));
  const choose = () => {
    replace(crew, crewView(crewOf(agents, repository.value)));
    fillIn(offers.get(repository.value));
    offerCommits(repository.value, offers.get(repository.value)).catch(() => {});
  };
  repository.addEventListener("change", choose);
  choose();
}

function repositoryName(id, offer) {
  if (!offer) return shortId(id);
  return `${offer.name} · ${offer.branch || "no branch"} at ${offer.head.slice(0, 12)}`;
}

// What the worker has checked out, and how its project file proves work, where nothing else was said.
function fillIn(offer) {
  for (const [id, text] of [
    ["commit", offer?.head ?? ""],
    ["verify", (offer?.verify ?? []).join("\n")],
  ]) {
    const input = /** @type {HTMLInputElement | null} */ (document.getElementById(id));
    if (input && (!input.value || input.dataset.filled === input.value)) {
      input.value = text;
      input.dataset.filled = text;
    }
  }
}

// What is checked out, then commits that earlier runs of the repository started from or ended with, the latest first.
async function offerCommits(repository, offer) {
  const list = document.getElementById("commits");
  if (!list || !repository) return;
  const wanted = { order: "RUN_ORDER_ENDED", view: "RUN_VIEW_LINE", page: { page_size: 50 } };
  const { runs } = await call(ORCHESTRATOR, "ListRuns", wanted);
  const same = runs.filter((run) => run.repository?.id === repository);
  const earlier = same.flatMap((run) => [run.accepted_commit, run.repository.base_commit]);
  const commits = new Set([offer?.head, ...earlier].filter(Boolean));
  replace(
    list,
    [...commits].slice(0, 10).map((one) => h("option", { value: one })),
  );
}

async function submit(event, { form, old, problem, go }) {
  event.preventDefault();
  const start = form.querySelector("#start");
  start.disabled = true;
  try {
    const answer = await change(ORCHESTRATOR, "Submit", orderFrom(new FormData(form), old));
    if (answer.run) return go(`/runs/${encodeURIComponent(answer.run.id)}`);
    problem.textContent = `The router starts no run for these words: ${answer.routing.explanation || plain(answer.routing.mode)}. Say what is to be done.`;
  } catch (error) {
    problem.textContent = [
      error.message,
      ...(error.violations ?? []).map((one) => `${one.field}: ${one.description}`),
    ].join("\n");
  }
  problem.hidden = false;
  start.disabled = false;
  return undefined;
}

// The form as Submit takes it.
export function orderFrom(values, old) {
  const lines = (name) =>
    String(values.get(name) ?? "")
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  const kept = new Map(old.acceptance_criteria.map((one) => [one.statement, one]));
  const repository = values.get("repository");
  const criteria = lines("holds").map(
    (statement, place) => kept.get(statement) ?? { id: `A${place + 1}`, statement, required: true },
  );
  return {
    message: values.get("message"),
    ...(repository ? { repository: { id: repository, base_commit: values.get("commit") ?? "" } } : {}),
    verify_commands: lines("verify").map((line) => ({ arguments: words(line) })),
    acceptance_criteria: criteria.map((one, place) =>
      criteria.findIndex((other) => other.id === one.id) === place ? one : { ...one, id: `${one.id}-${place + 1}` },
    ),
    template: values.get("template") ?? "",
    review_plan: Boolean(values.get("review_plan")),
    ...(Number(values.get("parallel")) ? { crew: { parallel: Number(values.get("parallel")) } } : {}),
    budget: {
      ...old.budget,
      assignments: Number(values.get("assignments") || 0),
      cost_micros: String(Math.round(Number(values.get("cost") || 0) * 1e6)),
    },
    labels: old.labels,
  };
}
