// @ts-check
// Schedules: when each starts a run, what became of the last times, and a person's pause, resume, trigger and delete.

import { change, SCHEDULES } from "./api.js";
import { title } from "./counts.js";
import { dialog, field } from "./dialogs.js";
import { chip, h, keepCards, link, nothing, replace, said, toast } from "./dom.js";
import { Sweep } from "./sweep.js";
import { poll } from "./watch.js";
import { clip, clock, plain, seconds, shortId, tone, word } from "./words.js";

const LOOK_AGAIN = 5000;
const SHOWN_STARTS = 5;
const HOUR = 3600;
const WHAT_FOLLOWS = {
  pause: "No more runs are started; those that are live go on. Times that pass are not made up for.",
  resume: "It goes on with the next time.",
  trigger: "A run is started now, besides its times.",
  delete: "No more runs are started, for good; those that are live go on.",
};
const POSSIBLE = { ACTIVE: ["trigger", "pause", "delete"], PAUSED: ["trigger", "resume", "delete"], DELETED: [] };

export async function show(main, { signal }) {
  title("Schedules");
  const cards = h("div", { class: "cards", id: "schedules" });
  replace(main, h("h1", {}, "Schedules"), cards);
  const listed = { service: SCHEDULES, method: "ListSchedules", items: "schedules" };
  const known = new Sweep({ ...listed, key: (one) => one.id, size: 2 });
  let isFirst = true;
  const draw = () =>
    keepCards(
      cards,
      known.list.sort((one, other) => (one.created_at < other.created_at ? 1 : -1)),
      (one) => `${one.id}/${one.seq}`,
      (one) => scheduleCard(one, again),
      nothing("No schedules; ", h("code", {}, 'pointsman schedule "…" --cron "0 3 * * *"'), " makes one."),
    );
  const again = async () => {
    await known.load();
    if (!signal.aborted) draw();
  };
  await poll(LOOK_AGAIN, signal, async () => {
    await (isFirst ? known.load() : known.look());
    isFirst = false;
    if (!signal.aborted) draw();
  });
}

// A schedule in the words of `pointsman schedule show`.
export function scheduleCard(one, done) {
  const state = word(one.state);
  const { cron, time_zone: zone } = one.spec;
  return h(
    "article",
    { class: "card", "data-schedule": one.id },
    h(
      "div",
      { class: "bar" },
      h("span", {}, chip(plain(state), tone(state)), h("strong", {}, said(clip(one.order.message, 200)))),
      h("span", { class: "dim" }, h("code", {}, cron), ` ${zone}`),
    ),
    lines(one, state).map((line) => h("p", {}, line)),
    h("ul", { class: "starts" }, one.starts.slice(-SHOWN_STARTS).reverse().map(startLine)),
    h(
      "div",
      { class: "actions" },
      POSSIBLE[state].map((name) => button(one, name, done)),
    ),
  );
}

function lines(one, state) {
  const { repository } = one.order;
  const from = repository?.branch || repository?.base_commit?.slice(0, 12);
  const counts = [
    [one.missed, "missed"],
    [one.overlapped, "left, as a run was live"],
    [one.refused, "refused"],
  ].filter(([count]) => count);
  return [
    [one.next_at ? `next: ${clock(one.next_at)}` : "no next time", from ? [", from ", said(from)] : ""],
    one.reason ? [`${plain(state)}: `, said(one.reason)] : null,
    [
      link(`/runs?show=all&label=${encodeURIComponent(`schedule=${one.id}`)}`, `${one.started} runs`),
      counts.map(([count, name]) => `, ${count} ${name}`),
    ],
    [
      `missed times: ${plain(one.spec.missed)}, for ${seconds(one.spec.catch_up) / HOUR} hours; `,
      `while a run is live: ${plain(one.spec.overlap)}`,
    ],
    ...one.waiting.map((at) => [
      `the run of ${clock(at)} waits: for the run before it, for room, or for a worker with the branch`,
    ]),
  ].filter(Boolean);
}

function startLine({ nominal_at: at, run_id: id, outcome, reason }) {
  const run = id ? link(`/runs/${encodeURIComponent(id)}`, shortId(id)) : "no run";
  return h(
    "li",
    {},
    `${clock(at)}: `,
    run,
    " ",
    reason ? said(reason) : chip(plain(outcome || "at work"), tone(outcome)),
  );
}

function button(one, name, done) {
  const look = name === "delete" ? { class: "danger" } : {};
  return h("button", { type: "button", ...look, onclick: () => ask(one, name, done) }, name);
}

function ask(one, name, done) {
  const why = name === "pause" || name === "delete" ? [field("reason", "Why", {})] : [];
  const act = async (given) => {
    const method = `${name[0].toUpperCase()}${name.slice(1)}Schedule`;
    await change(SCHEDULES, method, { schedule_id: one.id, ...given });
    toast(`Done: ${name}`, "good");
    setTimeout(done);
  };
  return dialog(`${name} the schedule`, WHAT_FOLLOWS[name], why, act, name === "delete");
}
