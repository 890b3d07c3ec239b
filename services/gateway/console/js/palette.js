// @ts-check
// Go anywhere: pages, and runs found by their words.

import { call, ORCHESTRATOR } from "./api.js";
import { chip, h, replace, said } from "./dom.js";
import { ATTENTION, tone, word } from "./words.js";

const PAGES = [
  ["Runs", "/runs"],
  ["Runs that need you", "/runs?show=needs-you"],
  ["Runs that are stuck", "/runs?show=stuck"],
  ["Runs that failed", "/runs?show=failed"],
  ["New run", "/new"],
  ["Waits for a person", "/people"],
  ["Agents", "/agents"],
  ["Queue", "/queue"],
  ["Schedules", "/schedules"],
  ["Router", "/router"],
];
const PAUSE = 150;
const MOST = 8;

export function openPalette(go) {
  if (document.querySelector("dialog.palette")) return;
  const input = h("input", {
    type: "search",
    "aria-label": "Go to",
    placeholder: "Go to a page, or to a run by its words",
  });
  const list = h("ul", { class: "found" });
  const box = h("dialog", { class: "palette", "aria-label": "Go to" }, input, list);
  let timer = 0;
  let shownFor = "";
  const choose = (path) => {
    box.close();
    go(path);
  };
  const option = (path, ...content) =>
    h("li", {}, h("button", { type: "button", class: "plain", onclick: () => choose(path) }, content));
  const pages = (text) =>
    PAGES.filter(([name]) => name.toLowerCase().includes(text.toLowerCase())).map(([name, path]) => option(path, name));
  const find = async (text) => {
    const wanted = { text, view: "RUN_VIEW_LINE", page: { page_size: MOST } };
    const { runs } = text ? await call(ORCHESTRATOR, "ListRuns", wanted).catch(() => ({ runs: [] })) : { runs: [] };
    if (input.value !== text) return;
    const found = runs.map((run) =>
      option(
        `/runs/${encodeURIComponent(run.id)}`,
        chip(ATTENTION[word(run.attention)], tone(run.attention)),
        said(run.intent.slice(0, 90)),
      ),
    );
    replace(list, pages(text), found);
    shownFor = text;
  };
  // What is chosen is the first of what was found for these words, never of what is still shown for others.
  const enter = async () => {
    const text = input.value;
    clearTimeout(timer);
    if (shownFor !== text) await find(text);
    if (shownFor === text) list.querySelector("button")?.click();
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => find(input.value), PAUSE);
  });
  box.addEventListener("keydown", (event) => walk(event, box, input, enter));
  box.addEventListener("close", () => box.remove());
  replace(list, pages(""));
  document.body.append(box);
  box.showModal();
  input.focus();
}

function walk(event, box, input, enter) {
  const all = [...box.querySelectorAll("li button")];
  if (event.key === "Enter" && event.target === input) {
    event.preventDefault();
    enter();
  }
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!move || all.length === 0) return;
  event.preventDefault();
  const place = all.indexOf(document.activeElement) + move;
  (all[place] ?? input).focus();
}
