// A table of any length: only the rows in sight exist.

import { h } from "./dom.js";

const SPARE = 4;

export class VirtualTable {
  // columns: [{ title, class }]; row(item) gives the cells; path(item) gives the address that the row leads to, or nothing.
  constructor({ label, columns, row, path, onOpen, rowHeight = 44, phoneHeight = 84, height = "calc(100vh - 210px)" }) {
    Object.assign(this, { row, path, onOpen, rowHeight, phoneHeight, columns });
    this.items = [];
    this.active = 0;
    this.shown = new Map();
    this.space = h("div", { class: "vspace", role: "presentation" });
    this.scroller = h("div", { class: "vscroll", role: "rowgroup" }, this.space);
    this.scroller.style.maxHeight = height;
    const titles = columns.map((column) =>
      h("span", { class: `cell ${column.class}`, role: "columnheader" }, column.title),
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
    const focused = this.space.contains(document.activeElement)
      ? Number(document.activeElement.closest(".vrow").dataset.index)
      : -1;
    for (const [index, element] of this.shown) {
      if (index < first || index >= last || everything) {
        element.remove();
        this.shown.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) if (!this.shown.has(index)) this.add(index, step);
    if (focused >= 0) this.shown.get(focused)?.querySelector("a, button")?.focus({ preventScroll: true });
  }

  add(index, step) {
    const item = this.items[index];
    const cells = this.row(item).map((content, column) =>
      h("span", { class: `cell ${this.columns[column].class}`, role: "cell" }, content),
    );
    const element = h("div", { class: "vrow", role: "row", "aria-rowindex": index + 2, "data-index": index }, cells);
    element.style.transform = `translateY(${index * step}px)`;
    element.style.height = `${step}px`;
    if (this.onOpen) element.addEventListener("click", (event) => this.open(event, item));
    this.shown.set(index, element);
    this.space.append(element);
  }

  open(event, item) {
    if (!event.target.closest("a") && !String(getSelection())) this.onOpen(item);
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
    const from = Number(document.activeElement.closest?.(".vrow")?.dataset.index ?? -1);
    this.focus(Math.min(this.items.length - 1, Math.max(0, from + move)));
  }

  focus(index) {
    const step = this.step;
    const top = index * step;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top + step > this.scroller.scrollTop + this.scroller.clientHeight)
      this.scroller.scrollTop = top + step - this.scroller.clientHeight;
    this.draw();
    this.shown.get(index)?.querySelector("a, button")?.focus({ preventScroll: true });
  }

  close() {
    this.observer.disconnect();
  }
}
