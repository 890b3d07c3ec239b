// Everything that waits for a person, on one page: the question, what each answer leads to, and the button.

import { answerChoices, cancelChoice, choices } from "./actions.js";
import { ago, chip, h, keepCards, link, replace } from "./dom.js";
import { countPeople, LIVE, RunFeed } from "./feed.js";
import { drawEpics, drawPipelines } from "./unowned.js";
import { poll } from "./watch.js";
import { plain, shortId, word } from "./words.js";

const LOOK_AGAIN = 3000;

export async function show(main, { signal }) {
  document.title = "Waits for a person · Pointsman";
  const questions = h("div", { class: "cards", id: "questions" });
  const epics = h("div", { class: "cards", id: "epics" });
  const pipelines = h("div", { class: "cards", id: "pipelines" });
  replace(
    main,
    h("h1", {}, "Waits for a person"),
    questions,
    part("Epics that no run works on", epics),
    part("Escalated pipelines without a run", pipelines),
  );
  const feed = new RunFeed({ filter: { states: LIVE }, signal, onChange: (now) => draw(questions, now) });
  const reload = async () => {
    await Promise.all([drawEpics(epics, signal, reload), drawPipelines(pipelines, signal, reload)]);
    for (const holder of [epics, pipelines]) holder.parentElement.hidden = !holder.querySelector(".card");
  };
  const look = async () => document.querySelector("dialog") || (await reload());
  poll(LOOK_AGAIN, signal, look).catch(() => {});
  await feed.start();
}

// Parts without anything in them are not shown.
function part(title, holder) {
  return h("section", { hidden: true }, h("h2", {}, title), holder);
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
  return h(
    "article",
    { class: "card" },
    h(
      "div",
      { class: "bar" },
      chip(plain(question.kind), "ask"),
      h("span", { class: "dim" }, "asked ", ago(question.asked_at), " ago"),
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
    choices([...answerChoices(run), cancelChoice(run, "cancel the run")]),
  );
}
