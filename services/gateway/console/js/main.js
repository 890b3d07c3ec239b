// @ts-check
// Which page is shown for which address, and what every page shares.

import { signIn } from "./api.js";
import { chooseNews, startCounting, title, wantsNews } from "./counts.js";
import { dialog, field } from "./dialogs.js";
import { h, here, replace, sayWhen, tick } from "./dom.js";
import { helpPage, startKeys } from "./keys.js";
import { show as showRun } from "./run.js";
import { show as showRuns } from "./runs.js";

// A page that the first view does not wait for.
function later(load) {
  return async (main, page) => (await load()).show(main, page);
}

async function palette() {
  (await import("./palette.js")).openPalette(go);
}

/** @type {[RegExp, (main: HTMLElement, page: object) => Promise<void>][]} */
const PAGES = [
  [/^\/(runs)?$/, showRuns],
  [/^\/runs\/(?<id>.+)$/, showRun],
  [/^\/new$/, later(() => import("./newrun.js"))],
  [/^\/people$/, later(() => import("./people.js"))],
  [/^\/agents$/, later(() => import("./agents.js"))],
  [/^\/queue$/, later(() => import("./queue.js"))],
  [/^\/schedules$/, later(() => import("./schedules.js"))],
  [/^\/router$/, later(() => import("./router.js"))],
  [/^\/components$/, later(() => import("./components.js"))],
];
const TRY_AGAIN = 3000;
// When the rest of the script is fetched, so that it is there in an outage too.
const SOON = 1000;
let leave = new AbortController();
let shown = "";

// quietly: the address is replaced, not added to the history; keepFocus: whoever writes goes on writing.
export function go(path, { quietly = false, keepFocus = false } = {}) {
  const target = here(path);
  if (quietly) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  show({ keepFocus });
}

async function show({ keepFocus = false } = {}) {
  shown = location.pathname + location.search;
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const main = document.getElementById("main");
  const focused = keepFocus ? document.activeElement?.id : "";
  mark();
  for (const [pattern, showPage] of PAGES) {
    const match = pattern.exec(location.pathname);
    if (!match) continue;
    if (!keepFocus) replace(main);
    try {
      const drawn = showPage(main, { signal, id: decodeURIComponent(match.groups?.id ?? ""), go });
      if (focused) refocus(focused);
      await drawn;
    } catch (error) {
      if (!signal.aborted) fail(main, error, signal);
    }
    return;
  }
  title("No such page");
  replace(
    main,
    h("h1", {}, "There is no such page"),
    h("p", {}, h("a", { href: here("/runs"), "data-nav": "" }, "All runs")),
  );
}

function refocus(id) {
  const field = document.getElementById(id);
  field?.focus();
  if (field instanceof HTMLInputElement) field.setSelectionRange(field.value.length, field.value.length);
}

// Only what follows the # has changed: the page stays, and goes to the place itself.
function moved() {
  if (location.pathname + location.search === shown) dispatchEvent(new Event("placechange"));
  else show();
}

// Where the gateway asks who is there.
function signInForm(error) {
  const token = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const enter = (event) => {
    event.preventDefault();
    signIn(token.value.trim());
    show();
  };
  return h(
    "form",
    { class: "failure try", onsubmit: enter },
    h("h1", {}, "Sign in"),
    h("p", {}, error.message),
    h("label", { for: "token" }, "Bearer token"),
    token,
    h("button", { type: "submit", class: "primary" }, "Enter"),
  );
}

// An outage passes: the page is tried again by itself until it is there.
function fail(main, error, signal) {
  if (error.reason === "UNAUTHENTICATED") {
    replace(main, signInForm(error));
    return;
  }
  const passing = error.status === undefined || error.status >= 500 || error.status === 429;
  const again = h("button", { type: "button", onclick: () => show() }, "Try again");
  const text = passing ? "Pointsman cannot be reached. This page comes by itself as soon as it can." : error.message;
  replace(
    main,
    h("div", { class: "failure", role: "alert" }, h("h1", {}, "This page cannot be shown"), h("p", {}, text), again),
  );
  if (passing) setTimeout(() => signal.aborted || show(), TRY_AGAIN);
}

function mark() {
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const anchors = document.querySelectorAll("header nav a");
  for (const anchor of anchors) {
    const path = new URL(anchor.href).pathname;
    anchor.href = here(path);
    const isHere = location.pathname.startsWith(path) || (location.pathname === "/" && path === "/runs");
    if (isHere) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  document.getElementById("project").textContent = new URLSearchParams(location.search).get("project") ?? "local";
}

function onClick(event) {
  const anchor = event.target.closest?.("a[data-nav]");
  if (!anchor || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(anchor.getAttribute("href"));
}

function chooseProject() {
  const now = new URLSearchParams(location.search).get("project") ?? "local";
  dialog(
    "Another project",
    "Everything that is shown belongs to one project.",
    [field("project", "Project", { value: now, required: true })],
    ({ project }) => {
      history.pushState(null, "", `/runs${project === "local" ? "" : `?project=${encodeURIComponent(project)}`}`);
      show();
    },
  );
}

function theme() {
  const root = document.documentElement;
  const stored = localStorage.getItem("theme");
  if (stored) root.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
}

function news() {
  const button = document.getElementById("news");
  const draw = (wanted) => button.setAttribute("aria-pressed", String(wanted));
  draw(wantsNews());
  button.hidden = !("Notification" in globalThis);
  button.addEventListener("click", async () => draw(await chooseNews()));
}

document.getElementById("live").textContent = "ready";
document.getElementById("project").addEventListener("click", chooseProject);
document.getElementById("help").addEventListener("click", helpPage);
document.addEventListener("click", onClick);
document.addEventListener("mouseover", sayWhen);
addEventListener("popstate", moved);
theme();
news();
startKeys({
  palette,
  "/": () => (document.getElementById("search") ? document.getElementById("search").focus() : palette()),
  "?": helpPage,
  n: () => go("/new"),
  "g r": () => go("/runs"),
  "g p": () => go("/people"),
  "g a": () => go("/agents"),
  "g q": () => go("/queue"),
  "g s": () => go("/schedules"),
});
setInterval(() => document.hidden || tick(), 1000);
show().finally(() => setTimeout(() => import("./palette.js").catch(() => {}), SOON));
startCounting();
