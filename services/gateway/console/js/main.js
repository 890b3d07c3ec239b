// Which page is shown for which address, and what every page shares.

import { signIn } from "./api.js";
import { h, replace, tick } from "./dom.js";
import { show as showAgents } from "./agents.js";
import { show as showPeople } from "./people.js";
import { show as showRouter } from "./router.js";
import { show as showRun } from "./run.js";
import { show as showRuns } from "./runs.js";

const PAGES = [
  [/^\/(runs)?$/, showRuns],
  [/^\/runs\/(?<id>.+)$/, showRun],
  [/^\/people$/, showPeople],
  [/^\/agents$/, showAgents],
  [/^\/router$/, showRouter],
];
let leave = new AbortController();

export function go(path) {
  const kept = new URLSearchParams(location.search).get("project");
  const target = new URL(path, location.origin);
  if (kept && !target.searchParams.has("project")) target.searchParams.set("project", kept);
  history.pushState(null, "", target);
  show();
}

async function show() {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const main = document.getElementById("main");
  mark();
  for (const [pattern, showPage] of PAGES) {
    const match = pattern.exec(location.pathname);
    if (!match) continue;
    replace(main);
    try {
      await showPage(main, { signal, id: decodeURIComponent(match.groups?.id ?? ""), go });
    } catch (error) {
      if (!signal.aborted) replace(main, failure(error));
    }
    return;
  }
  replace(main, h("h1", {}, "There is no such page"));
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

function failure(error) {
  if (error.reason === "UNAUTHENTICATED") return signInForm(error);
  const again = h("button", { type: "button", onclick: show }, "Try again");
  return h(
    "div",
    { class: "failure", role: "alert" },
    h("h1", {}, "This page cannot be shown"),
    h("p", {}, error.message),
    again,
  );
}

function mark() {
  for (const anchor of document.querySelectorAll("header nav a")) {
    const here =
      location.pathname.startsWith(new URL(anchor.href).pathname) ||
      (location.pathname === "/" && anchor.pathname === "/runs");
    if (here) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

function onClick(event) {
  const anchor = event.target.closest?.("a[data-nav]");
  if (!anchor || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(anchor.getAttribute("href"));
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

document.getElementById("live").textContent = "ready";
document.addEventListener("click", onClick);
addEventListener("popstate", show);
theme();
setInterval(() => document.hidden || tick(), 1000);
show();
