// @ts-check
// The works of several coders who did a task side by side: what each is worth, and which was chosen, in the words of
// `pointsman show`.

import { textOf } from "./artifact.js";
import { diffView } from "./diff.js";
import { chip, h, nothing, replace, said } from "./dom.js";
import { gradeName, tone } from "./words.js";

const TONES = { "not proven": "dim", passed: "said", refused: "bad" };

export function contendersView({ contenders }) {
  if (!contenders?.length) return null;
  return h(
    "div",
    { class: "contenders", id: "contenders", role: "list", "aria-label": "Works side by side" },
    contenders.map(card),
  );
}

// What a work is worth; a work that was not accepted is worth nothing, whatever its tests say.
export function contenderWorth({ finding }) {
  if (!finding) return "not proven";
  return finding.accepted ? gradeName(finding.proof?.grade) || "passed" : "refused";
}

function card(one) {
  const worth = contenderWorth(one);
  const files = one.work?.changed_files.length ?? 0;
  const change = h("div", {});
  return h(
    "div",
    { class: one.chosen ? "card chosen" : "card", role: "listitem", "data-contender": one.number },
    h(
      "div",
      { class: "bar" },
      h("h4", {}, `contender ${one.number} `, h("span", { class: "dim" }, "by ", said(one.author))),
      one.chosen ? chip("chosen", "said") : null,
    ),
    h("p", {}, chip(worth, TONES[worth] ?? tone(worth)), ` ${files} ${files === 1 ? "file" : "files"}`),
    one.reason && worth !== "passed" && !one.chosen ? h("p", { class: "dim" }, said(one.reason)) : null,
    one.work?.diff?.sha256
      ? h("button", { type: "button", class: "quiet", onclick: () => open(one, change) }, "its change")
      : null,
    change,
  );
}

// A second click puts it away.
async function open(one, change) {
  if (change.childElementCount) {
    replace(change);
    return;
  }
  replace(change, nothing("loading the diff"));
  try {
    const text = await textOf(one.work.diff.sha256);
    replace(
      change,
      diffView(text, new Map(), () => {}),
    );
  } catch (error) {
    replace(change, nothing(error.message));
  }
}
