// The list of runs: live, filtered by what stands in the address, as long as it likes.

import { ago, chip, gauge, h, link, nothing, replace } from "./dom.js";
import { countPeople, RunFeed } from "./feed.js";
import { VirtualTable } from "./virtual.js";
import { ENDED, limits, plain, RUN_STATES, shortId, tone, word } from "./words.js";

const GROUPS = {
  "": { title: "All", states: [] },
  live: { title: "Live", states: RUN_STATES.filter((state) => !ENDED.has(state)) },
  COMPLETE: { title: "Complete", states: ["COMPLETE"] },
  FAILED: { title: "Failed", states: ["FAILED"] },
  CANCELLED: { title: "Cancelled", states: ["CANCELLED"] },
};
const FIRST = 'pointsman run "fix the failing test in src/parser.py"';
const WAITS = ["", "PERSON", "AGENT", "DEPENDENCY", "PAUSE", "BUDGET", "TIMER", "PEER"];
const COLUMNS = [
  { title: "State", class: "c-state" },
  { title: "Run", class: "c-run" },
  { title: "Waits for", class: "c-wait" },
  { title: "Budget", class: "c-budget" },
  { title: "Age", class: "c-age" },
];

export async function show(main, { signal, go }) {
  document.title = "Runs · Pointsman";
  const filters = readFilters();
  const count = h("p", { class: "dim", role: "status", id: "run-count" }, "loading");
  const table = new VirtualTable({
    label: "Runs",
    columns: COLUMNS,
    row,
    onOpen: (run) => go(`/runs/${encodeURIComponent(run.id)}`),
  });
  const none = nothing();
  const draw = (feed) => redraw(feed, { table, count, none }, readFilters());
  const form = filterForm(filters, () => draw(feed));
  const states = (GROUPS[filters.state]?.states ?? [filters.state]).map((state) => `RUN_STATE_${state}`);
  const labels = filters.label.includes("=") ? Object.fromEntries([filters.label.split(/=(.*)/s).slice(0, 2)]) : {};
  const feed = new RunFeed({ filter: { states, labels, session_id: filters.session }, signal, onChange: draw });
  replace(main, h("div", { class: "bar" }, h("h1", {}, "Runs"), count), form, table.element, none);
  signal.addEventListener("abort", () => table.close());
  await feed.start();
}

function readFilters() {
  const query = new URLSearchParams(location.search);
  const of = (name) => query.get(name) ?? "";
  return { state: of("state"), waits: of("waits"), text: of("q"), session: of("session"), label: of("label") };
}

function filterForm(filters, redrawNow) {
  const set = (name, value, reload) => {
    const url = new URL(location.href);
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
    history.replaceState(null, "", url);
    if (reload) dispatchEvent(new PopStateEvent("popstate"));
    else redrawNow();
  };
  const group = h(
    "div",
    { class: "tabs", role: "group", "aria-label": "State" },
    Object.entries(GROUPS).map(([key, { title }]) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(filters.state === key), onclick: () => set("state", key, true) },
        title,
      ),
    ),
  );
  const waits = h(
    "select",
    { "aria-label": "Waits for", onchange: (event) => set("waits", event.target.value) },
    WAITS.map((kind) =>
      h(
        "option",
        { value: kind, selected: kind === filters.waits },
        kind ? `waits for ${plain(kind)}` : "waits for anything",
      ),
    ),
  );
  const text = h("input", {
    type: "search",
    placeholder: "Text, id or epic",
    "aria-label": "Search",
    value: filters.text,
    oninput: (event) => set("q", event.target.value),
  });
  const session = h("input", {
    placeholder: "Session",
    "aria-label": "Session",
    value: filters.session,
    onchange: (event) => set("session", event.target.value, true),
  });
  const label = h("input", {
    placeholder: "Label, as team=a",
    "aria-label": "Label",
    value: filters.label,
    onchange: (event) => set("label", event.target.value, true),
  });
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    group,
    waits,
    text,
    session,
    label,
  );
}

function redraw(feed, { table, count, none }, filters) {
  const runs = feed.list;
  const shown = runs.filter((run) => matches(run, filters));
  table.set(shown);
  table.element.hidden = feed.loaded && shown.length === 0;
  none.hidden = !table.element.hidden;
  const isAll = Object.values(filters).every((value) => value === "");
  replace(none, isAll ? ["Nothing has been submitted yet. Start with ", h("code", {}, FIRST)] : "No run is like that.");
  const more = feed.loaded ? "" : ", more to come";
  const text =
    shown.length === runs.length
      ? `${runs.length} ${runs.length === 1 ? "run" : "runs"}${more}`
      : `${shown.length} of ${runs.length} runs${more}`;
  if (count.textContent !== text) count.textContent = text;
  countPeople(runs);
}

function matches(run, filters) {
  if (filters.waits && word(run.waiting_for?.kind) !== filters.waits) return false;
  const wanted = filters.text.toLowerCase();
  return !wanted || `${run.id} ${run.epic_id} ${run.intent}`.toLowerCase().includes(wanted);
}

function row(run) {
  const state = word(run.state);
  const about = h("span", { class: "intent" }, run.intent.slice(0, 300));
  return [
    chip(state, tone(state)),
    [link(`/runs/${encodeURIComponent(run.id)}`, about), h("span", { class: "dim id" }, shortId(run.id))],
    waiting(run),
    budget(run),
    ago(run.created_at),
  ];
}

function waiting(run) {
  const wait = run.waiting_for;
  if (!wait) return h("span", { class: "dim" }, run.end_reason);
  const kind = word(wait.kind);
  return [
    chip(plain(kind), tone(kind)),
    h("span", { class: "who" }, ` ${wait.who}`),
    h("span", { class: "dim" }, " ", ago(wait.since)),
  ];
}

// The limit that is nearest.
function budget(run) {
  const [tightest] = limits(run).sort((one, other) => other.share - one.share);
  if (!tightest) return h("span", { class: "dim" }, "no limit");
  return h(
    "span",
    { title: `${tightest.name}: ${tightest.used} of ${tightest.limit}` },
    gauge(tightest.share),
    h("span", { class: "dim" }, ` ${Math.round(100 * tightest.share)} %`),
  );
}
