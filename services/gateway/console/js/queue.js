// @ts-check
// Merge queues: what is on its way into which branch, what it waits for, and which conflicts are coming.

import { change, LANDING, read } from "./api.js";
import { title } from "./counts.js";
import { dialog, field } from "./dialogs.js";
import { ago, chip, h, keepCards, link, nothing, replace, said, section, toast } from "./dom.js";
import { Sweep } from "./sweep.js";
import { poll } from "./watch.js";
import { plain, shortId, tone, word } from "./words.js";

const LOOK_AGAIN = 5000;
const ENDED = new Set(["LANDED", "REJECTED", "CANCELLED"]);
const MOST_ENDED = 50;
// What stands where a text was cut.
const CUT = "[…]";
const REPLIES = {
  retry: "It goes back into the queue and is tried again.",
  approve: "What the proof asks is right: it is tried again, and taken.",
  reject: "It is not landed; branch and bundle stay.",
};

export async function show(main, { signal }) {
  title("Queue");
  const live = h("div", { id: "entries" });
  const coming = h("div", { id: "coming" });
  const more = h("p", { class: "dim" });
  const ended = h("div", { class: "cards", id: "landed" });
  replace(
    main,
    h("h1", {}, "Queue"),
    live,
    section("predictions", "Coming conflicts", coming, more),
    section("ended", "Ended", ended),
  );
  const listed = { service: LANDING, method: "ListEntries", items: "entries", request: { brief: true } };
  const entries = new Sweep({ ...listed, key: (one) => one.id, size: 3 });
  let isFirst = true;
  const look = async () => {
    if (document.querySelector("dialog")) return;
    const [{ predictions, left_off: leftOff }] = await Promise.all([
      read(LANDING, "ListPredictions", { brief: true }),
      isFirst ? entries.load() : entries.look(),
    ]);
    isFirst = false;
    if (signal.aborted) return;
    drawEntries(live, ended, entries.list, () => look());
    drawComing(coming, predictions);
    replace(more, leftOff ? `and ${leftOff} more` : "");
  };
  await poll(LOOK_AGAIN, signal, look);
}

function targetOf({ terms }) {
  return terms.remote ? `${terms.remote}/${terms.target}` : terms.target;
}

// Live entries by their queue, in the order in which they land.
function drawEntries(live, ended, entries, done) {
  const queues = new Map();
  const waiting = entries.filter((one) => !ENDED.has(word(one.state)));
  waiting.sort(
    (one, other) => one.terms.priority - other.terms.priority || (one.created_at < other.created_at ? -1 : 1),
  );
  for (const one of waiting) queues.set(one.queue_id, [...(queues.get(one.queue_id) ?? []), one]);
  const make = ([, [first]]) =>
    h("section", { class: "kind" }, h("h2", {}, `Into ${targetOf(first)}`), h("div", { class: "cards" }));
  keepCards(
    live,
    [...queues],
    ([id]) => id,
    make,
    nothing("No entries; ", h("code", {}, "pointsman deliver RUN --queue"), " puts work in."),
  );
  [...queues.values()].forEach((all, place) => {
    keepCards(live.children[place].lastElementChild, all, version, (one) => entryCard(one, done), "");
  });
  const over = entries.filter((one) => ENDED.has(word(one.state)));
  over.sort((one, other) => (one.updated_at < other.updated_at ? 1 : -1));
  keepCards(ended, over.slice(0, MOST_ENDED), version, (one) => entryCard(one, done), "Nothing has ended yet.");
}

function version(entry) {
  return `${entry.id}/${entry.seq}`;
}

// An entry and its runs as one story, in the words of `pointsman queue show`.
export function entryCard(entry, done) {
  const state = word(entry.state);
  const path = (id) => link(`/runs/${encodeURIComponent(id)}`, shortId(id));
  const lines = [
    ["run ", path(entry.run_id), `, work ${entry.commit.slice(0, 12)} of `, path(entry.work_run_id)],
    entry.stack ? [said(layer(entry.stack))] : null,
    ...entry.links.map((one) => [
      one.resolver ? "linked run of the resolver " : "linked run ",
      path(one.run_id),
      ` (${plain(one.kind)}): ${one.outcome || "at work"}`,
    ]),
    entry.proposal?.url ? ["pull request ", outside(entry.proposal.url)] : null,
    entry.landed_commit ? [`landed with ${entry.landed_commit.slice(0, 12)}`] : null,
    !entry.landed_commit && entry.waiting_for ? [`waits for ${entry.waiting_for}`] : null,
    entry.end_reason ? [said(entry.end_reason)] : null,
  ].filter(Boolean);
  return h(
    "article",
    { class: "card", "data-entry": entry.id },
    h(
      "div",
      { class: "bar" },
      h("span", {}, chip(plain(state), tone(state)), h("strong", {}, said(entry.title))),
      h("span", { class: "dim" }, `${targetOf(entry)}, round ${entry.rounds}, `, ago(entry.updated_at), " ago"),
    ),
    lines.map((line) => h("p", {}, line)),
    entry.finding && !entry.landed_commit ? finding(entry.finding, entry.id) : null,
    h("div", { class: "actions" }, buttons(entry, state, done)),
  );
}

function layer({ number, layers, on_branch: branch }) {
  const above = layers.slice(number).map((one) => one.title);
  return `layer ${number} of ${layers.length}${branch ? `, on ${branch}` : ""}${above.length ? `; above it: ${above.join(", ")}` : ""}`;
}

// Only addresses of the web become links: what a forge says is somebody else's word.
function outside(url) {
  return /^https?:\/\//.test(url)
    ? h("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, url)
    : said(url);
}

// A list has the beginning of what was found; all of it comes when somebody asks for it.
function finding({ kind, text, files, untrusted }, id) {
  const words = h("pre", { tabindex: "0" }, text);
  const all = h("button", { type: "button", class: "quiet", onclick: () => showAll(id, words, all) }, "show all");
  return h(
    "details",
    { open: true },
    h("summary", {}, `${plain(kind)}${untrusted ? ", words of the forge" : ""}: ${files.join(", ")}`),
    text ? words : null,
    text.includes(CUT) ? all : null,
  );
}

async function showAll(id, words, button) {
  try {
    const { entry } = await read(LANDING, "GetEntry", { entry_id: id });
    replace(words, entry.finding?.text ?? "");
    button.remove();
  } catch (error) {
    toast(error.message, "bad");
  }
}

function buttons(entry, state, done) {
  if (ENDED.has(state)) return [];
  const replies = state === "ASKED" ? Object.keys(REPLIES) : [];
  return [
    ...replies.map((reply) => h("button", { type: "button", onclick: () => answer(entry, reply, done) }, reply)),
    h("button", { type: "button", class: "danger", onclick: () => cancel(entry, done) }, "take it out"),
  ];
}

function answer(entry, reply, done) {
  return dialog(reply, REPLIES[reply], [field("text", "Why", {})], async ({ text }) => {
    const sent = { entry_id: entry.id, reply: `ENTRY_REPLY_${reply.toUpperCase()}`, text };
    await change(LANDING, "AnswerEntry", sent);
    toast(`Answered: ${reply}`, "good");
    setTimeout(done);
  });
}

function cancel(entry, done) {
  const then = "It leaves the queue; the branch and the bundle of the work stay.";
  const act = async ({ reason }) => {
    await change(LANDING, "CancelEntry", { entry_id: entry.id, reason });
    toast("It is out of the queue", "good");
    setTimeout(done);
  };
  return dialog("Take it out of the queue", then, [field("reason", "Why", { value: "cancelled by hand" })], act, true);
}

function drawComing(holder, predictions) {
  const key = (one) => `${one.run_id}/${one.other_run_id}/${one.seen_at}`;
  keepCards(holder, predictions, key, comingLine, "None is seen between runs that are at work.");
}

function comingLine(one) {
  const side = (id, task) => [link(`/runs/${encodeURIComponent(id)}`, shortId(id)), task ? ` ${task}` : ""];
  const what = one.declared ? "both plans name" : "both change";
  return h(
    "p",
    {},
    side(one.run_id, one.task_id),
    ": coming conflict with ",
    side(one.other_run_id, one.other_task_id),
    ", seen ",
    ago(one.seen_at),
    ` ago: ${what} ${one.files.slice(0, 8).join(", ")}`,
  );
}
