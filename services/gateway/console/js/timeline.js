// @ts-check
// The journal as it was written.

import { h } from "./dom.js";
import { isMove } from "./machine.js";
import { VirtualTable } from "./virtual.js";
import { details, facts, timeOfDay } from "./words.js";

const COLUMNS = [
  { title: "#", class: "t-seq" },
  { title: "Time", class: "t-time" },
  { title: "Event", class: "t-event" },
  { title: "State", class: "t-state" },
  { title: "By", class: "t-actor" },
  { title: "About", class: "t-about" },
];

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
