// @ts-check
// Where a run is, in six words; the states of the machine are behind a tab.

import { h } from "./dom.js";
import { ENDED, PHASES, phaseOf, stateWord, word } from "./words.js";

export function rail(run) {
  const state = word(run.state);
  const now = phaseOf(state);
  const names = Object.keys(PHASES);
  const place = names.indexOf(now);
  const items = names.map((name, index) => {
    const over = ENDED.has(state) ? state === "COMPLETE" : index < place;
    const isNow = name === now && !ENDED.has(state);
    const ended = name === "deliver" && ENDED.has(state);
    const kind = isNow ? "now" : ended && state !== "COMPLETE" ? "stopped" : over ? "over" : "";
    return h("li", { class: kind, "data-phase": name, "aria-current": isNow ? "step" : undefined }, name);
  });
  return h(
    "div",
    { class: "rail" },
    h("ol", { "aria-label": "Phases" }, items),
    h("span", { class: "dim" }, stateWord(state)),
  );
}
