// @ts-check
// The keyboard: single letters, never while somebody writes, and a page that says which there are.

import { h } from "./dom.js";

const maps = new Set();
const ABOUT = [
  ["/", "search"],
  ["j k", "next, previous row"],
  ["x", "pick the row"],
  ["Enter", "open the row"],
  ["a", "accept, where a run asks for it"],
  ["r", "reject, where a run asks for it"],
  ["n", "new run"],
  ["g r, g p, g a, g q, g s", "go to runs, people, agents, queue, schedules"],
  ["Ctrl K or ⌘ K", "go anywhere"],
  ["?", "this page"],
];
let before = "";

// keys: { letter: work }, until `signal` aborts.
export function onKey(keys, signal) {
  maps.add(keys);
  signal.addEventListener("abort", () => maps.delete(keys));
}

function isWriting(element) {
  return element?.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable], dialog[open]");
}

export function startKeys(everywhere) {
  maps.add(everywhere);
  document.addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key === "k") {
      event.preventDefault();
      everywhere.palette();
      return;
    }
    if (event.metaKey || event.ctrlKey || event.altKey || isWriting(event.target)) return;
    const name = before === "g" ? `g ${event.key}` : event.key;
    before = event.key;
    const found = [...maps].reverse().find((keys) => keys[name]);
    if (!found || name === "palette") return;
    event.preventDefault();
    found[name]();
  });
}

export function helpPage() {
  const box = h(
    "dialog",
    { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    h(
      "dl",
      { class: "keys" },
      ABOUT.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]),
    ),
    h("form", { method: "dialog" }, h("button", {}, "Back")),
  );
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
