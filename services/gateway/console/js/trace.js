// @ts-check
// The journal as bars: how long the run was in each state, who worked meanwhile, and long waits folded together.

import { chip, h, nothing, replace } from "./dom.js";
import { isMove } from "./machine.js";
import { clock, details, duration, ENDED } from "./words.js";

const MOST_BARS = 400;
const MOST_FOLDS = 12;
const LEAST_FOLD = 10000;
const STRIP = 0.04;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

// Spans: each stay in a state, and each assignment from its making to its end.
function spans(transitions, now) {
  const found = [];
  let state = null;
  const open = new Map();
  for (const one of transitions) {
    const at = Date.parse(one.at);
    if (isMove(one) || state === null) {
      if (state) state.end = at;
      state = { name: one.to_state, kind: "state", start: at, end: now, open: true };
      found.push(state);
    }
    assignment(one, at, now, open, found);
  }
  const last = transitions.at(-1);
  if (last && ENDED.has(last.to_state)) state.end = Date.parse(last.at);
  return found;
}

function assignment(one, at, now, open, found) {
  if (one.event === "assigned") {
    const { assignment: made } = details(one);
    const name = [made.purpose, made.task_id, made.stage || made.slot].filter(Boolean).join(" ").toLowerCase();
    const span = { name, kind: "work", start: at, end: now };
    open.set(made.assignment_id, span);
    found.push(span);
  } else if (one.event === "assignment_ended" || one.event === "researched") {
    const { assignment_id: id, end = "DONE", agent_id: by } = details(one);
    const span = open.get(id);
    if (span) Object.assign(span, { end: at, kind: end === "DONE" ? "work" : "lost", by });
  }
}

// Times in which nobody worked: a person was asked, or no assignment was open. `isStuck`: nobody is there for what is open now.
export function waits(transitions, now, isStuck = false) {
  const found = [];
  const open = new Set();
  let isAsked = false;
  transitions.forEach((one, place) => {
    const data = details(one);
    if (one.event === "asked") isAsked = true;
    else if (one.event === "answered") isAsked = false;
    else if (one.event === "assigned") open.add(data.assignment.assignment_id);
    else if (one.event === "assignment_ended" || one.event === "researched") open.delete(data.assignment_id);
    const next = transitions[place + 1];
    const start = Date.parse(one.at);
    const end = next ? Date.parse(next.at) : now;
    const before = found.at(-1);
    const isIdle = (!open.size || (!next && isStuck)) && end - start >= LEAST_FOLD;
    if (!isAsked && !isIdle) return;
    if (before?.end === start) before.end = end;
    else found.push({ start, end });
  });
  const long = found.filter((one) => one.end - one.start >= LEAST_FOLD);
  const longest = [...long].sort((one, other) => other.end - other.start - (one.end - one.start));
  const kept = new Set(longest.slice(0, MOST_FOLDS));
  return long.filter((one) => kept.has(one));
}

// Where a moment stands on the axis, 0 to 1: each fold is a narrow strip, however long it was.
export function scale(start, end, folds) {
  const folded = folds.reduce((sum, one) => sum + one.end - one.start, 0);
  const awake = Math.max(0, end - start - folded);
  const strip = awake ? STRIP * awake : 1;
  const whole = Math.max(1, awake + strip * folds.length);
  return (moment) => {
    let place = moment - start;
    for (const one of folds) {
      const length = one.end - one.start;
      const inside = Math.min(length, Math.max(0, moment - one.start));
      place -= inside * (1 - strip / length);
    }
    return Math.min(1, Math.max(0, place / whole));
  };
}

// The moment that stands at a place of the axis.
function momentAt(share, start, end, place) {
  let [low, high] = [start, end];
  for (let step = 0; step < 40; step += 1) {
    const middle = (low + high) / 2;
    if (place(middle) < share) low = middle;
    else high = middle;
  }
  return high;
}

export class TraceView {
  drawn = [];
  isStuck = false;

  constructor() {
    this.fold = h("input", { type: "checkbox", id: "fold-waits", checked: true, onchange: () => this.redraw() });
    this.about = h("span", { class: "dim" });
    this.folded = h("span", { class: "dim", id: "folded" });
    this.picture = h("div", {});
    this.element = h(
      "div",
      { id: "trace-list" },
      h("p", { class: "bar" }, this.about, h("label", { for: "fold-waits" }, this.fold, " fold waits ", this.folded)),
      this.picture,
    );
  }

  draw(transitions, isStuck) {
    Object.assign(this, { drawn: transitions, isStuck });
    this.redraw();
  }

  redraw() {
    const last = this.drawn.at(-1);
    if (!last) {
      replace(this.picture, nothing("Nothing has happened yet."));
      return;
    }
    const ended = ENDED.has(last.to_state);
    const now = ended ? Date.parse(last.at) : Date.now();
    const bars = spans(this.drawn, now).slice(-MOST_BARS);
    const start = Math.min(...bars.map((one) => one.start));
    const folds = this.fold.checked ? waits(this.drawn, now, this.isStuck).filter((one) => one.start >= start) : [];
    const place = scale(start, now, folds);
    const top = this.picture.querySelector(".waterfall")?.scrollTop ?? 0;
    const ticks = TICKS.map((share) => h("span", {}, duration(momentAt(share, start, now, place) - start)));
    const strips = folds.map((one) => [place(one.start), place(one.end), one]);
    const list = h(
      "ol",
      { class: "waterfall", tabindex: "0", "aria-label": "Trace" },
      bars.map((one) => barRow(one, place, strips)),
    );
    this.about.textContent = `${duration(now - start)} ${ended ? "in all" : "so far"}, from ${clock(start)}`;
    const sum = folds.reduce((all, one) => all + one.end - one.start, 0);
    replace(this.folded, folds.length ? chip(`${folds.length} folded, ${duration(sum)}`, "dim") : null);
    replace(this.picture, h("p", { class: "axis", "aria-hidden": "true" }, ticks), list);
    list.scrollTop = top;
  }
}

function barRow(one, place, strips) {
  const bar = h("span", { class: `span ${one.kind}` });
  const from = Math.min(0.995, place(one.start));
  put(bar, from, Math.max(0.004, place(one.end) - from));
  const lasted = duration(one.end - one.start);
  return h(
    "li",
    {
      class: one.kind === "state" ? "" : "inner",
      title: `${one.name}: ${lasted} from ${clock(one.start)}${one.by ? ` by ${one.by}` : ""}`,
    },
    h("span", { class: "name" }, one.name),
    h("span", { class: "track" }, strips.map(fold), bar),
    h("span", { class: "long" }, lasted),
  );
}

function fold([from, to, one]) {
  const strip = h("span", { class: "fold", title: `${duration(one.end - one.start)} of waiting, folded` });
  put(strip, from, to - from);
  return strip;
}

function put(element, from, width) {
  element.style.left = `${100 * from}%`;
  element.style.width = `${100 * width}%`;
}
