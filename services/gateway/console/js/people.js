// Everything that waits for a person, on one page: the question, what each answer leads to, and the button.

import { all, call, WORKFLOW } from "./api.js";
import { askAnswer, askCancel, askPlan, planActions } from "./actions.js";
import { chip, h, link, replace } from "./dom.js";
import { countPeople, RunFeed } from "./feed.js";
import { age, clock, ENDED, plain, RUN_STATES, shortId, word } from "./words.js";

const LOOK_AGAIN = 3000;
const LIVE = RUN_STATES.filter((state) => !ENDED.has(state)).map((state) => `RUN_STATE_${state}`);

export async function show(main, { signal }) {
  document.title = "Waits for a person · Pointsman";
  const questions = h("div", { class: "cards", id: "questions" });
  const epics = h("div", { class: "cards", id: "epics" });
  replace(main, h("h1", {}, "Waits for a person"), questions, h("h2", {}, "Epics that no run works on"), epics);
  const feed = new RunFeed({ filter: { states: LIVE }, signal, onChange: (now) => draw(questions, now) });
  const reload = () => drawEpics(epics, signal, reload);
  reload().catch(() => {});
  const timer = setInterval(
    () => document.hidden || document.querySelector("dialog") || reload().catch(() => {}),
    LOOK_AGAIN,
  );
  signal.addEventListener("abort", () => clearInterval(timer));
  await feed.start();
}

function draw(holder, feed) {
  const asked = feed.list
    .filter((run) => run.question)
    .sort((one, other) => (one.question.asked_at < other.question.asked_at ? -1 : 1));
  countPeople(asked);
  const kept = new Map([...holder.children].map((card) => [card.dataset.key, card]));
  const cards = asked.map((run) => kept.get(key(run)) ?? card(run));
  if (cards.length === 0)
    replace(holder, h("p", { class: "empty" }, feed.loaded ? "Nobody is waited for." : "loading"));
  else if (cards.some((one, place) => holder.children[place] !== one) || holder.children.length !== cards.length)
    replace(holder, cards);
}

function key(run) {
  return `${run.id}/${run.question.id}`;
}

function card(run) {
  const { question } = run;
  const about = question.subjects.length
    ? h(
        "p",
        {},
        "About: ",
        question.subjects.map((one) => h("code", { class: "subject" }, one)),
      )
    : null;
  const buttons = question.takes.map((kind) =>
    h("button", { type: "button", onclick: () => askAnswer(run, kind) }, plain(kind)),
  );
  const cancel = h("button", { type: "button", class: "danger", onclick: () => askCancel(run) }, "cancel the run");
  return h(
    "article",
    { class: "card", "data-key": key(run) },
    h(
      "div",
      { class: "bar" },
      chip(plain(question.kind), "ask"),
      h("span", { class: "dim", title: clock(question.asked_at) }, `asked ${age(question.asked_at)} ago`),
    ),
    h("p", { class: "question" }, question.text),
    about,
    h(
      "p",
      { class: "dim" },
      "Run ",
      link(`/runs/${encodeURIComponent(run.id)}`, shortId(run.id)),
      ` in ${word(run.state)}: `,
      h("span", { class: "intent" }, run.intent.slice(0, 300)),
    ),
    h("div", { class: "actions" }, buttons, cancel),
  );
}

async function drawEpics(holder, signal, reload) {
  const found = await all(WORKFLOW, "ListResumable", {}, "workflows");
  if (signal.aborted) return;
  if (found.length === 0) {
    replace(holder, h("p", { class: "empty" }, "There are none."));
    return;
  }
  const kept = new Map([...holder.children].map((card) => [card.dataset.version, card]));
  const cards = found.slice(0, 200).map((epic) => kept.get(version(epic)) ?? epicCard(epic, reload));
  if (cards.some((one, place) => holder.children[place] !== one) || holder.children.length !== cards.length)
    replace(holder, cards);
}

function version(epic) {
  return `${epic.workflow_id}/${epic.updated_at}`;
}

function epicCard(epic, reload) {
  const act = async (action) => {
    const { workflow, tasks } = await call(WORKFLOW, "GetWorkflow", {
      workflow_id: epic.workflow_id,
      page: { page_size: 1000 },
    });
    await askPlan(action, workflow, tasks, reload);
  };
  const buttons = planActions(epic.status).map((action) =>
    h("button", { type: "button", class: action.danger ? "danger" : "", onclick: () => act(action) }, action.title),
  );
  return h(
    "article",
    { class: "card", "data-key": epic.workflow_id, "data-version": version(epic) },
    h(
      "div",
      { class: "bar" },
      chip(plain(epic.status), "ask"),
      h("span", { class: "dim" }, `changed ${age(epic.updated_at)} ago`),
    ),
    h("p", { class: "question" }, epic.title || epic.intake_text || epic.workflow_id),
    h(
      "p",
      {},
      `Waits for: ${epic.waits_for}. ${epic.counts?.completed ?? 0} of ${epic.counts?.total ?? 0} tasks are done.`,
    ),
    h("div", { class: "actions" }, buttons),
  );
}
