// @ts-check
// How many runs ask what: one small call now and then, for the badge, the title, the tabs and notifications.

import { ORCHESTRATOR, read } from "./api.js";
import { pulse } from "./watch.js";

const LOOK_AGAIN = 5000;
// The first view goes first.
const FIRST_LOOK = 300;
const NAMES = ["needs_you", "stuck", "working", "failed", "done", "cancelled"];
const listeners = new Set();
let name = "Pointsman";
let latest = null;

// The title of the page, with how many runs need somebody.
export function title(text) {
  name = text;
  draw();
}

export function counts() {
  return latest;
}

export function onCounts(listener, signal) {
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener));
  if (latest) listener(latest);
}

export async function look() {
  const answer = await read(ORCHESTRATOR, "CountRuns");
  const before = latest;
  latest = Object.fromEntries(NAMES.map((one) => [one, Number(answer[one] ?? 0)]));
  draw();
  if (before && latest.needs_you > before.needs_you) notify(latest.needs_you);
  for (const listener of listeners) listener(latest);
}

export function startCounting() {
  const quietly = () =>
    look().then(
      () => pulse(true),
      (error) => pulse(error.status !== undefined && error.status < 500),
    );
  addEventListener("online", quietly);
  setTimeout(quietly, FIRST_LOOK);
  setInterval(() => (document.hidden && !wantsNews() ? undefined : quietly()), LOOK_AGAIN);
  document.addEventListener("visibilitychange", () => document.hidden || quietly());
}

function draw() {
  const asking = latest?.needs_you ?? 0;
  const badge = document.getElementById("people-count");
  badge.textContent = String(asking);
  badge.hidden = asking === 0;
  document.title = `${asking ? `(${asking}) ` : ""}${name} · Pointsman`;
}

export function wantsNews() {
  return localStorage.getItem("news") === "yes" && globalThis.Notification?.permission === "granted";
}

// Whoever wants to be told is told, where no page is in sight.
export async function chooseNews() {
  const wanted = !wantsNews() && (await Notification.requestPermission()) === "granted";
  localStorage.setItem("news", wanted ? "yes" : "no");
  return wanted;
}

function notify(asking) {
  if (!document.hidden || !wantsNews()) return;
  const text = asking === 1 ? "1 run needs you" : `${asking} runs need you`;
  const note = new Notification("Pointsman", { body: text, tag: "needs-you" });
  note.addEventListener("click", () => window.focus());
}
