// Everything that waits for a person, on one page: the question, what each answer leads to, and the button.

import { askAnswer, askCancel } from "./actions.js";
import { chip, h, keepCards, link, replace } from "./dom.js";
import { countPeople, RunFeed } from "./feed.js";
import { drawEpics, drawPipelines } from "./unowned.js";
import { age, clock, ENDED, plain, RUN_STATES, shortId, word } from "./words.js";

const LOOK_AGAIN = 3000;
const LIVE = RUN_STATES.filter((state) => !ENDED.has(state)).map((state) => `RUN_STATE_${state}`);

export async function show(main, { signal }) {
  document.title = "Waits for a person · Pointsman";
  const questions = h("div", { class: "cards", id: "questions" });
  const epics = h("div", { class: "cards", id: "epics" });
  const pipelines = h("div", { class: "cards", id: "pipelines" });
  replace(
    main,
    h("h1", {}, "Waits for a person"),
    questions,
    h("h2", {}, "Epics that no run works on"),
    epics,
    h("h2", {}, "Escalated pipelines without a run"),
    pipelines,
  );
  const feed = new RunFeed({ filter: { states: LIVE }, signal, onChange: (now) => draw(questions, now) });
  const reload = () => Promise.all([drawEpics(epics, signal, reload), drawPipelines(pipelines, signal, reload)]);
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
  keepCards(holder, asked, key, card, feed.loaded ? "Nobody is waited for." : "loading");
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
    { class: "card" },
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
