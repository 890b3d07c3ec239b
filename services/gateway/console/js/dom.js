// @ts-check
// Elements from data. Text always goes through text nodes: nothing that anybody wrote is ever read as markup.

import { age, clock, tame } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name in element && !(element instanceof SVGElement) && typeof value === "boolean") element[name] = value;
    else element.setAttribute(name, SPOKEN.has(name) ? tame(String(value)) : String(value));
  }
  element.append(...shown(children));
  return element;
}

const SPOKEN = new Set(["title", "aria-label"]);

function shown(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : tame(String(child))));
}

// New content; the focus goes to the likeness of what had it, else to the page, never to nowhere.
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  element.replaceChildren(...shown(children));
  if (focused && !focused.isConnected) refocus(element, focused);
  return element;
}

function refocus(element, before) {
  /** @type {HTMLElement[]} */
  const alike = Array.from(element.querySelectorAll(before.tagName));
  const same = (one) => (before.id ? one.id === before.id : one.textContent === before.textContent);
  (alike.find(same) ?? document.getElementById("main")).focus({ preventScroll: true });
}

export function chip(text, tone) {
  return h("span", { class: `chip ${tone ?? ""}` }, text);
}

// What an agent says, never drawn like what we know: an outline, whatever it says.
export function claimed(text) {
  return h("span", { class: "chip claimed" }, text);
}

// How long ago something was; it grows by itself, so that nothing has to be drawn again for it.
export function ago(timestamp) {
  return h("time", { datetime: timestamp, "data-age": "" }, age(timestamp));
}

// The day and the time of it, once somebody points at it: a first view does not pay for it.
export function sayWhen(event) {
  const time = event.target.closest?.("time[data-age]");
  if (time && !time.title) time.title = clock(time.dateTime);
}

export function tick() {
  /** @type {NodeListOf<HTMLTimeElement>} */
  const times = document.querySelectorAll("time[data-age]");
  for (const time of times) {
    const text = age(time.dateTime);
    if (time.textContent !== text) time.textContent = text;
  }
}

export function gauge(share) {
  const fill = h("span", { class: share >= 0.8 ? "fill full" : "fill" });
  fill.style.width = `${Math.min(100, 100 * share)}%`;
  return h("span", { class: "gauge", "aria-hidden": "true" }, fill);
}

export function table(id, label, titles, body) {
  const head = titles.map((title) => h("th", { scope: "col" }, title));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `${label}, as a table` },
    h("table", { id }, h("thead", {}, h("tr", {}, head)), body),
  );
}

// A row whose cells say what they are where there is no room for a head.
export function titled(titles, row) {
  [...row.children].forEach((cell, place) => {
    if (cell.tagName === "TD") cell.dataset.title = titles[place];
  });
  return row;
}

export function nothing(...children) {
  return h("p", { class: "empty" }, children);
}

export function section(id, title, ...children) {
  return h(
    "section",
    { id, class: "block", "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title),
    children,
  );
}

// A way to another page, in the same project.
export function link(path, ...children) {
  return h("a", { href: here(path), "data-nav": "" }, children);
}

export function here(path) {
  const project = new URLSearchParams(location.search).get("project");
  const target = new URL(path, location.origin);
  if (project && !target.searchParams.has("project")) target.searchParams.set("project", project);
  return target.pathname + target.search + target.hash;
}

// Somebody's words within ours: what they write keeps to itself.
export function said(...children) {
  return h("bdi", {}, children);
}

export function toast(text, tone) {
  const note = h("div", { class: `toast ${tone ?? ""}` }, text);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), 6000);
}

// Cards for items; those whose key is still there stay as they are, with their focus and their open dialogs.
export function keepCards(holder, items, key, make, otherwise) {
  const kept = new Map([...holder.children].map((card) => [card.dataset.version, card]));
  const cards = items.map((item) => {
    const card = kept.get(key(item)) ?? make(item);
    card.dataset.version = key(item);
    return card;
  });
  const same = cards.length === holder.children.length && cards.every((one, place) => holder.children[place] === one);
  if (cards.length === 0) replace(holder, typeof otherwise === "string" ? nothing(otherwise) : otherwise);
  else if (!same) replace(holder, cards);
}

const REST = 4;

// At once, and again after a pause if it was wanted meanwhile: bursts are drawn once, a single change without delay; what
// takes long is done less often.
export function throttle(work, milliseconds) {
  let timer = 0;
  let isWanted = false;
  const run = () => {
    isWanted = false;
    const begun = performance.now();
    work();
    timer = setTimeout(rest, Math.max(milliseconds, REST * (performance.now() - begun)));
  };
  const rest = () => {
    timer = 0;
    if (isWanted) run();
  };
  return () => {
    if (timer) isWanted = true;
    else run();
  };
}

// At once, and once more when it is done if it was wanted meanwhile: what is read is never older than the last wish.
export function latest(work) {
  let isBusy = false;
  let isWanted = false;
  return async () => {
    isWanted = true;
    if (isBusy) return;
    isBusy = true;
    while (isWanted) {
      isWanted = false;
      await work();
    }
    isBusy = false;
  };
}
