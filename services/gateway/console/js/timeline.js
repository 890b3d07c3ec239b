// @ts-check
// The journal as it was written, and the same as bars: how long the run was in each state, and who worked meanwhile.

import { h, nothing, replace } from "./dom.js";
import { isMove } from "./machine.js";
import { VirtualTable } from "./virtual.js";
import { clock, details, duration, ENDED, facts, timeOfDay } from "./words.js";

const COLUMNS = [
  { title: "#", class: "t-seq" },
  { title: "Time", class: "t-time" },
  { title: "Event", class: "t-event" },
  { title: "State", class: "t-state" },
  { title: "By", class: "t-actor" },
  { title: "About", class: "t-about" },
];
const MOST_BARS = 400;

export class TimelineView {
  constructor() {
    this.payload = h("pre", { class: "payload", hidden: true, tabindex: "0", "aria-label": "Payload" });
    this.table = new VirtualTable({
      label: "Timeline",
      columns: COLUMNS,
      row: (one) => this.row(one),
      version: (one) => one.seq,
      phoneHeight: 64,
      height: "420px",
    });
    this.element = h("div", { id: "timeline-list" }, this.table.element, this.payload);
  }

  draw(transitions) {
    if (transitions.length !== this.table.items.length) this.table.set([...transitions].reverse());
    if (this.wanted) this.reveal(this.wanted);
  }

  // Go to an event by its number, as soon as it is there.
  reveal(seq) {
    const index = this.table.items.findIndex((one) => Number(one.seq) === seq);
    this.wanted = index < 0 ? seq : 0;
    if (index < 0) return;
    this.table.focus(index);
    this.show(this.table.items[index]);
  }

  row(one) {
    const state = isMove(one) ? `${one.from_state} → ${one.to_state}` : one.to_state;
    const open = h("button", { type: "button", class: "plain", onclick: () => this.show(one) }, one.event);
    return [
      h("a", { href: `#event-${one.seq}` }, one.seq),
      h("time", { datetime: one.at, title: one.at }, timeOfDay(one.at)),
      open,
      state,
      one.actor,
      facts(details(one)).join(" · ").slice(0, 200),
    ];
  }

  show(one) {
    this.payload.textContent = JSON.stringify(one, null, 1).slice(0, 200000);
    this.payload.hidden = false;
    this.payload.dataset.seq = one.seq;
  }

  close() {
    this.table.close();
  }
}

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

export function drawWaterfall(holder, transitions) {
  const last = transitions.at(-1);
  if (!last) return replace(holder, nothing("Nothing has happened yet."));
  const ended = ENDED.has(last.to_state);
  const now = ended ? Date.parse(last.at) : Date.now();
  const bars = spans(transitions, now).slice(-MOST_BARS);
  const start = Math.min(...bars.map((one) => one.start));
  const whole = Math.max(1, now - start);
  const top = holder.querySelector(".waterfall")?.scrollTop ?? 0;
  const axis = h(
    "p",
    { class: "axis", "aria-hidden": "true" },
    [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", {}, duration(part * whole))),
  );
  const list = h(
    "ol",
    { class: "waterfall", tabindex: "0", "aria-label": "Trace" },
    bars.map((one) => barRow(one, start, whole)),
  );
  const about = `${duration(whole)} ${ended ? "in all" : "so far"}, from ${clock(start)}`;
  replace(holder, h("p", { class: "dim" }, about), axis, list);
  list.scrollTop = top;
  return holder;
}

function barRow(one, start, whole) {
  const bar = h("span", { class: `span ${one.kind}` });
  bar.style.marginLeft = `${Math.min(99.5, (100 * (one.start - start)) / whole)}%`;
  bar.style.width = `${Math.max(0.4, (100 * (one.end - one.start)) / whole)}%`;
  const lasted = duration(one.end - one.start);
  return h(
    "li",
    {
      class: one.kind === "state" ? "" : "inner",
      title: `${one.name}: ${lasted} from ${clock(one.start)}${one.by ? ` by ${one.by}` : ""}`,
    },
    h("span", { class: "name" }, one.name),
    h("span", { class: "track" }, bar),
    h("span", { class: "long" }, lasted),
  );
}
