// @ts-check
// Everything that waits for a person, by kind of question: the question, what each answer leads to, and the same answer for all.

import { answerChoices, cancelChoice, choices } from "./actions.js";
import { BulkBar } from "./bulk.js";
import { title } from "./counts.js";
import { ago, chip, h, keepCards, link, replace, said } from "./dom.js";
import { RunFeed } from "./feed.js";
import { isAboutPlan } from "./question.js";
import { drawEpics, drawPipelines, epicSweep, pipelineSweep } from "./unowned.js";
import { poll } from "./watch.js";
import { questionWord, shortId, stateWord } from "./words.js";

const LOOK_AGAIN = 5000;

export async function show(main, { signal }) {
  title("People");
  const questions = h("div", { id: "questions" });
  const epics = h("div", { class: "cards", id: "epics" });
  const pipelines = h("div", { class: "cards", id: "pipelines" });
  replace(
    main,
    h("h1", {}, "Waits for a person"),
    questions,
    part("Epics that no run works on", epics),
    part("Escalated pipelines without a run", pipelines),
  );
  const filter = { attention: ["NEEDS_YOU"], text: "", labels: {}, session: "" };
  const feed = new RunFeed({ filter, signal, onChange: (now) => draw(questions, now) });
  const left = [epicSweep(), pipelineSweep()];
  const reload = async () => {
    await Promise.all(left.map((one) => one.load()));
    redraw();
  };
  const redraw = () => {
    if (signal.aborted) return;
    drawEpics(epics, left[0].list, reload);
    drawPipelines(pipelines, left[1].list, reload);
    for (const holder of [epics, pipelines]) holder.parentElement.hidden = !holder.querySelector(".card");
  };
  let isFirst = true;
  const look = async () => {
    if (document.querySelector("dialog")) return;
    await Promise.all(left.map((one) => (isFirst ? one.load() : one.look())));
    isFirst = false;
    redraw();
  };
  poll(LOOK_AGAIN, signal, look).catch(() => {});
  await feed.start();
}

// Parts without anything in them are not shown.
function part(text, holder) {
  return h("section", { hidden: true }, h("h2", {}, text), holder);
}

function draw(holder, feed) {
  const asked = feed.list
    .filter((run) => run.question)
    .sort((one, other) => (one.question.asked_at < other.question.asked_at ? -1 : 1));
  const kinds = new Map();
  for (const run of asked)
    kinds.set(questionWord(run.question), [...(kinds.get(questionWord(run.question)) ?? []), run]);
  const groups = [...kinds].map(([name, runs]) => ({ name, runs }));
  const make = ({ name }) =>
    h("section", { class: "kind", "aria-label": name }, h("div", { class: "bar" }), h("div", { class: "cards" }));
  keepCards(holder, groups, ({ name }) => name, make, feed.loaded ? "Nobody is waited for." : "loading");
  groups.forEach(({ name, runs }, place) => {
    const [bar, cards] = holder.children[place].children;
    const text = `${name} ${runs.length}`;
    if (bar.dataset.text !== text)
      replace(bar, h("h2", {}, `${name} `, chip(String(runs.length), "ask")), allAlike(runs));
    bar.dataset.text = text;
    keepCards(cards, runs, key, card, "");
  });
}

function allAlike(runs) {
  if (runs.length < 2) return null;
  const bar = new BulkBar(new Map(runs.map((run) => [run.id, run])), () => {});
  return h("button", { type: "button", onclick: () => bar.answer(runs) }, `answer all ${runs.length} alike`);
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
  const path = `/runs/${encodeURIComponent(run.id)}`;
  return h(
    "article",
    { class: "card" },
    h(
      "div",
      { class: "bar" },
      h("span", {}, chip(questionWord(question), "ask"), evidenceLink(question, path)),
      h("span", { class: "dim" }, "asked ", ago(question.asked_at), " ago"),
    ),
    h("p", { class: "question" }, said(question.text)),
    about,
    evidence(run),
    h(
      "p",
      { class: "dim" },
      "Run ",
      link(path, shortId(run.id)),
      ` ${stateWord(run.state)}: `,
      h("span", { class: "intent" }, said(run.intent.slice(0, 300))),
    ),
    choices([...answerChoices(run), cancelChoice(run, "cancel the run")]),
  );
}

function evidenceLink(question, path) {
  return isAboutPlan(question) ? link(`${path}#plan`, "plan") : link(`${path}#review`, "evidence");
}

// What has been shown so far, so that nobody answers blindly.
function evidence(run) {
  const { tasks = 0, proven = 0, accepted = 0, caught = 0 } = run.grades ?? {};
  if (!tasks) return null;
  return h(
    "p",
    { class: "dim" },
    `${proven} of ${tasks} tasks proven, ${accepted} accepted${caught ? `, ${caught} caught` : ""}; ${run.usage?.assignments ?? 0} of ${run.budget?.assignments ?? 0} agents started`,
  );
}
