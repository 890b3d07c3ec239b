// @ts-check
// The list of runs by what they ask of whoever looks: searched and counted on the server, as long as it likes.

import { storyLink } from "./again.js";
import { BulkBar } from "./bulk.js";
import { counts, onCounts, title } from "./counts.js";
import { ago, chip, h, here, link, nothing, replace, said, toast } from "./dom.js";
import { RunFeed } from "./feed.js";
import { onKey } from "./keys.js";
import { isAboutWork } from "./question.js";
import { savedViews } from "./views.js";
import { VirtualTable } from "./virtual.js";
import { ATTENTION, gradeName, money, phaseOf, plain, questionWord, shortId, tone, word } from "./words.js";

const FIRST = 'pointsman run "fix the failing test in src/parser.py"';
const TABS = { ...Object.fromEntries(Object.entries(ATTENTION).map(([key, text]) => [slug(text), key])), all: "" };
const SEARCH_PAUSE = 200;

function slug(text) {
  return text.replaceAll(" ", "-");
}

export async function show(main, { signal, go }) {
  title("Runs");
  const filters = readFilters();
  const count = h("p", { class: "dim", role: "status", id: "run-count" }, "loading");
  const picked = new Map();
  const bulk = new BulkBar(picked, () => {
    all.checked = picked.size > 0 && picked.size === table.items.length;
    table.draw(true);
  });
  const all = h("input", { type: "checkbox", "aria-label": "Pick all that are shown" });
  all.addEventListener("change", () => pickAll(all.checked));
  const table = new VirtualTable({
    label: "Runs",
    columns: columns(all),
    row: (run) => row(run, picked, () => bulk.draw()),
    version: (run) => versionOf(run, picked.has(run.id)),
    onOpen: (run) => go(`/runs/${encodeURIComponent(run.id)}`),
  });
  const pickAll = (on) => {
    for (const run of table.items) on ? picked.set(run.id, run) : picked.delete(run.id);
    bulk.draw();
    table.draw(true);
  };
  const none = nothing();
  const feed = new RunFeed({
    filter: filters,
    signal,
    onChange: (now) => redraw(now, { table, count, none, filters, picked, bulk }),
  });
  const tabs = attentionTabs(filters, signal);
  const form = searchForm(filters, go);
  replace(
    main,
    h(
      "div",
      { class: "bar" },
      h("h1", {}, "Runs"),
      tabs,
      count,
      link("/new", h("span", { class: "button primary" }, "+ New run")),
    ),
    form,
    bulk.element,
    table.element,
    none,
  );
  signal.addEventListener("abort", () => table.close());
  onCounts((now) => mayBeBehind(feed, now) && feed.again(), signal);
  onKey({ j: () => table.walk(1), k: () => table.walk(-1), x: () => pickFocused(table, picked, bulk) }, signal);
  const started = feed.start();
  if (history.state?.top) started.then(() => table.scroller.scrollTo(0, history.state.top));
  table.scroller.addEventListener(
    "scroll",
    () => history.replaceState({ ...history.state, top: table.scroller.scrollTop }, ""),
    { passive: true },
  );
  await started;
}

// What a row shows of a run: it is drawn again when this changes.
function versionOf(run, isPicked) {
  const waits = run.waiting_for;
  return JSON.stringify([run.id, run.seq, run.attention, waits?.holder, waits?.heard_at, run.labels, isPicked]);
}

function columns(all) {
  return [
    { title: "Pick", head: all, class: "c-pick" },
    { title: "Asks", class: "c-asks" },
    { title: "Run", class: "c-run" },
    { title: "Proof", class: "c-proof" },
    { title: "Spent", class: "c-spent" },
    { title: "Next", class: "c-act" },
  ];
}

// Counts that say otherwise than the list: an agent came or went, which no transition tells.
function mayBeBehind(feed, now) {
  if (!feed.loaded || feed.filter.text || Object.keys(feed.filter.labels).length || feed.filter.session) return false;
  const shown = { NEEDS_YOU: 0, STUCK: 0, WORKING: 0 };
  for (const run of feed.runs.values()) if (word(run.attention) in shown) shown[word(run.attention)] += 1;
  const wanted = feed.filter.attention.length ? feed.filter.attention : Object.keys(shown);
  return wanted.some((name) => name in shown && shown[name] !== now[name.toLowerCase()]);
}

function readFilters() {
  const query = new URLSearchParams(location.search);
  const of = (name) => query.get(name) ?? "";
  const show = of("show");
  if (show && !(show in TABS)) toast(`There is no view “${show.slice(0, 40)}”; all runs are shown.`, "bad");
  const label = of("label");
  return {
    show: show in TABS ? show : "all",
    attention: TABS[show] ? [TABS[show]] : [],
    text: of("q"),
    session: of("session"),
    labels: label.includes("=") ? Object.fromEntries([label.split(/=(.*)/s).slice(0, 2)]) : {},
  };
}

// The tabs are links: each has an address of its own, and how many runs are behind it.
function attentionTabs(filters, signal) {
  const holder = h("nav", { class: "tabs", "aria-label": "What runs ask" });
  const draw = (now) => {
    const links = Object.entries(TABS).map(([name, key]) => {
      const url = new URL(location.href);
      if (key) url.searchParams.set("show", name);
      else url.searchParams.delete("show");
      const number =
        key && now
          ? h(
              "span",
              { class: `number ${key === "NEEDS_YOU" || key === "STUCK" ? tone(key) : ""}` },
              String(now[key.toLowerCase()]),
            )
          : null;
      const chosen = filters.show === name ? "page" : undefined;
      return h(
        "a",
        { href: here(url.pathname + url.search), "data-nav": "", "data-show": name, "aria-current": chosen },
        key ? ATTENTION[key] : "all",
        " ",
        number,
      );
    });
    const focused = holder.contains(document.activeElement) ? document.activeElement.getAttribute("data-show") : "";
    replace(holder, links);
    if (focused) holder.querySelector(`[data-show="${focused}"]`)?.focus();
  };
  draw(counts());
  onCounts(draw, signal);
  return holder;
}

function searchForm(filters, go) {
  let timer = 0;
  const search = (value) => {
    const url = new URL(location.href);
    if (value) url.searchParams.set("q", value);
    else url.searchParams.delete("q");
    go(url.pathname + url.search, { keepFocus: true, quietly: true });
  };
  const text = h("input", {
    type: "search",
    id: "search",
    placeholder: "Search all text, id, session, label (press /)",
    "aria-label": "Search",
    value: filters.text,
    oninput: (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => search(event.target.value), SEARCH_PAUSE);
    },
  });
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    text,
    savedViews(),
  );
}

function redraw(feed, { table, count, none, filters, picked, bulk }) {
  const runs = feed.list;
  for (const [id] of picked) if (!feed.runs.has(id)) picked.delete(id);
  bulk.draw();
  table.set(runs);
  if (!performance.getEntriesByName("first-view").length) performance.mark("first-view");
  table.element.hidden = feed.loaded && runs.length === 0;
  none.hidden = !table.element.hidden;
  const isAll = filters.show === "all" && !filters.text && !filters.session && !Object.keys(filters.labels).length;
  replace(
    none,
    isAll
      ? ["Nothing has been submitted yet. ", link("/new", "Start a run here"), ", or with ", h("code", {}, FIRST)]
      : "No run is like that.",
  );
  const text = `${runs.length} ${runs.length === 1 ? "run" : "runs"}${feed.loaded ? "" : ", more to come"}`;
  if (count.textContent !== text) count.textContent = text;
}

function pickFocused(table, picked, bulk) {
  const index = document.activeElement?.closest(".vrow")?.getAttribute("data-index");
  const run = table.items[Number(index)];
  if (!run) return;
  picked.has(run.id) ? picked.delete(run.id) : picked.set(run.id, run);
  bulk.draw();
  table.draw(true);
}

function row(run, picked, changed) {
  const about = h("span", { class: "intent" }, said(run.intent.slice(0, 300)));
  const pick = h("input", {
    type: "checkbox",
    "aria-label": `Pick ${run.intent.slice(0, 60)}`,
    checked: picked.has(run.id),
  });
  pick.addEventListener("change", () => {
    pick.checked ? picked.set(run.id, run) : picked.delete(run.id);
    changed();
  });
  const labels = Object.entries(run.labels)
    .slice(0, 3)
    .map(([key, value]) => chip(`${key}=${value}`.slice(0, 40), "dim"));
  return [
    pick,
    asks(run),
    [
      link(`/runs/${encodeURIComponent(run.id)}`, about),
      storyLink(run),
      labels,
      h("span", { class: "dim id" }, shortId(run.id)),
    ],
    proof(run),
    spent(run),
    next(run),
  ];
}

// What the run asks, and why: the same words as on the command line.
export function asks(run) {
  const name = word(run.attention);
  return [chip(ATTENTION[name] ?? name, tone(name)), h("span", { class: "why" }, reason(run, name))];
}

function reason(run, name) {
  const wait = run.waiting_for;
  if (name === "NEEDS_YOU" && run.question) return [questionWord(run.question), " · ", ago(run.question.asked_at)];
  if (name === "STUCK") return ["nobody can ", h("code", {}, wait.who), " · ", ago(wait.since)];
  if (name === "WORKING" && wait?.holder) return [said(wait.holder), ", ", ago(wait.heard_at), " ago"];
  if (name === "WORKING" && wait && word(wait.kind) === "AGENT")
    return [`${wait.agents_able} can `, h("code", {}, wait.who)];
  if (name === "WORKING") return phaseOf(run.state);
  if (name === "DONE") return [gradeName(run.grade) || "not graded", " · ", ago(run.ended_at)];
  return [said(run.end_reason.slice(0, 80) || plain(run.state)), " · ", ago(run.ended_at)];
}

function proof(run) {
  const { tasks, proven, forced, caught } = run.grades ?? {};
  if (!tasks) return h("span", { class: "dim" }, "no plan");
  return [
    h("span", { class: proven && proven === tasks ? "proven" : "dim" }, `${proven}/${tasks} proven`),
    caught ? h("span", { class: "caught" }, ` ${caught} caught`) : null,
    forced ? h("span", { class: "caught" }, ` ${forced} forced`) : null,
  ];
}

function spent(run) {
  const { accepted = 0, tasks = 0 } = run.grades ?? {};
  const cost = money(run.usage?.cost_micros);
  return h(
    "span",
    { class: "dim", title: "tasks accepted, agents started, cost" },
    tasks ? `${accepted}/${tasks} · ` : "",
    `${run.usage?.assignments ?? 0}/${run.budget?.assignments ?? 0}`,
    cost ? ` · ${cost}` : "",
  );
}

function next(run) {
  const name = word(run.attention);
  const path = `/runs/${encodeURIComponent(run.id)}`;
  if (name === "NEEDS_YOU") return link(path, isAboutWork(run.question) ? "Review" : "Answer");
  if (name === "STUCK") return link("/agents", "Agents");
  if (name === "FAILED" || name === "CANCELLED") return link(`/new?from=${encodeURIComponent(run.id)}`, "Again");
  return name === "WORKING" ? link(`${path}#output`, "Output") : link(`${path}#review`, "Proof");
}
