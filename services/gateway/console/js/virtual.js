// @ts-check
// A table of any length: only the rows in sight exist.

import { h } from "./dom.js";

const SPARE = 4;

export class VirtualTable {
  row;
  version;
  onOpen;
  rowHeight;
  phoneHeight;
  columns;

  // columns: [{ title, class }]; row(item) gives the cells; version(item): while it stays the same, so does the row.
  constructor({
    label,
    columns,
    row,
    version,
    onOpen = undefined,
    rowHeight = 32,
    phoneHeight = 72,
    height = "calc(100vh - 190px)",
  }) {
    Object.assign(this, { row, version, onOpen, rowHeight, phoneHeight, columns });
    this.items = [];
    this.shown = new Map();
    this.space = h("div", { class: "vspace", role: "presentation" });
    this.scroller = h("div", { class: "vscroll", role: "rowgroup" }, this.space);
    this.scroller.style.maxHeight = height;
    const titles = columns.map((column) =>
      h("span", { class: `cell ${column.class}`, role: "columnheader" }, column.head ?? column.title),
    );
    const head = h("div", { class: "vhead", role: "rowgroup" }, h("div", { class: "vrow", role: "row" }, titles));
    this.element = h("div", { class: "vtable", role: "table", "aria-label": label }, head, this.scroller);
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.observer = new ResizeObserver(() => this.draw(true));
    this.observer.observe(this.scroller);
  }

  get step() {
    return matchMedia("(max-width: 720px)").matches ? this.phoneHeight : this.rowHeight;
  }

  set(items) {
    this.items = items;
    this.element.setAttribute("aria-rowcount", String(items.length + 1));
    this.draw(true);
  }

  draw(everything = false) {
    const step = this.step;
    this.space.style.height = `${this.items.length * step}px`;
    this.scroller.style.height = `${Math.max(this.items.length, 3) * step + 2}px`;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / step) - SPARE);
    const last = Math.min(this.items.length, first + Math.ceil(this.scroller.clientHeight / step) + 2 * SPARE);
    const focused = this.space.contains(document.activeElement) ? document.activeElement : null;
    const place = focused ? this.place(focused) : null;
    for (const [index, element] of this.shown) {
      const same = element.dataset.version === this.versionAt(index);
      if (index < first || index >= last || (everything && !same)) {
        element.remove();
        this.shown.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) if (!this.shown.has(index)) this.add(index, step);
    if (place && !focused.isConnected) this.refocus(place);
  }

  // What is drawn at a place; rows without a version are drawn anew each time.
  versionAt(index) {
    const item = this.items[index];
    return item && this.version ? this.version(item) : undefined;
  }

  // Where the focus is: the row by its own key, and which of its controls.
  place(element) {
    const row = element.closest(".vrow");
    const controls = [...row.querySelectorAll("a, button, input")];
    return { key: row.dataset.key, index: Number(row.dataset.index), control: controls.indexOf(element) };
  }

  refocus({ key, index, control }) {
    const rows = [...this.shown.values()];
    const row = rows.find((one) => key && one.dataset.key === key) ?? this.shown.get(index) ?? rows[0];
    const controls = [...(row?.querySelectorAll("a, button, input") ?? [])];
    (controls[control] ?? controls[0])?.focus({ preventScroll: true });
  }

  add(index, step) {
    const item = this.items[index];
    const cells = this.row(item).map((content, column) =>
      h("span", { class: `cell ${this.columns[column].class}`, role: "cell" }, content),
    );
    const marks = { "data-index": index, "data-key": item.id, "data-version": this.versionAt(index) };
    const element = h("div", { class: "vrow", role: "row", "aria-rowindex": index + 2, ...marks }, cells);
    element.style.transform = `translateY(${index * step}px)`;
    element.style.height = `${step}px`;
    if (this.onOpen) element.addEventListener("click", (event) => this.open(event, item));
    this.shown.set(index, element);
    this.space.append(element);
  }

  open(event, item) {
    if (!event.target.closest("a, button, input, label") && !String(getSelection())) this.onOpen(item);
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.step) - 1);
    const moves = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.items.length,
      End: this.items.length,
    };
    const move = moves[event.key];
    if (!move || this.items.length === 0) return;
    event.preventDefault();
    const from = Number(document.activeElement?.closest(".vrow")?.getAttribute("data-index") ?? -1);
    this.focus(Math.min(this.items.length - 1, Math.max(0, from + move)));
  }

  focus(index) {
    const step = this.step;
    const top = index * step;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top + step > this.scroller.scrollTop + this.scroller.clientHeight)
      this.scroller.scrollTop = top + step - this.scroller.clientHeight;
    this.draw();
    this.shown.get(index)?.querySelector("a, button.plain")?.focus({ preventScroll: true });
  }

  // One row on or back, from wherever the focus is.
  walk(move) {
    if (this.items.length === 0) return;
    const from = Number(document.activeElement?.closest(".vrow")?.getAttribute("data-index") ?? (move > 0 ? -1 : 0));
    this.focus(Math.min(this.items.length - 1, Math.max(0, from + move)));
  }

  close() {
    this.observer.disconnect();
  }
}
