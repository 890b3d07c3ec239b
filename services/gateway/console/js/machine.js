// @ts-check
// The run's machine, drawn from its own table, with the way that was taken and where the run is now.

import { h, replace, svg } from "./dom.js";
import { curve, ranks, snake } from "./layout.js";
import { word } from "./words.js";

const WIDE = { halfWidth: 66, halfHeight: 15, cellWidth: 158, cellHeight: 46 };
const NARROW = { halfWidth: 51, halfHeight: 13, cellWidth: 114, cellHeight: 40 };
const FROM_ANYWHERE = new Set(["cancel", "fatal_error", "requirement_changed"]);

export class MachineView {
  constructor(machine) {
    this.states = machine.states.map(word);
    this.rows = machine.transitions.map((row) => ({
      source: word(row.source),
      target: word(row.target),
      event: row.event,
      guard: row.guard,
    }));
    this.terminal = new Set(machine.terminal.map(word));
    this.element = h("div", { class: "graph", id: "machine-graph" });
    this.steps = h("ol", { class: "way", "aria-label": "The way taken" });
    this.length = h("summary", {});
    this.way = h("details", {}, this.length, this.steps);
    this.rank = ranks(
      this.states,
      this.main.map((row) => [row.source, row.target]),
    );
    const last = Math.max(...this.rank.values());
    for (const state of this.terminal) this.rank.set(state, last);
  }

  get main() {
    return this.rows.filter((row) => !FROM_ANYWHERE.has(row.event));
  }

  draw(current, transitions) {
    const width = this.element.clientWidth || 1000;
    const size = width < 600 ? NARROW : WIDE;
    const { places, width: across, height } = snake(this.states, this.rank, width, size);
    const taken = count(transitions);
    const moves = transitions.filter(isMove);
    const latest = moves.at(-1);
    const lines = this.edges(taken).map(([source, target, events]) =>
      edge({ places, size, taken, latest }, source, target, events),
    );
    const boxes = this.states.map((state) =>
      box(state, places.get(state), { current, visited: moves, terminal: this.terminal, size }),
    );
    const about = `The machine with ${this.states.length} states; the run is in ${current} after ${moves.length} moves.`;
    const picture = svg(
      "svg",
      {
        viewBox: `0 0 ${across} ${height}`,
        width: across,
        height,
        role: "img",
        "aria-label": about,
        class: size === NARROW ? "narrow" : undefined,
      },
      marker(),
      lines,
      boxes,
    );
    replace(this.element, picture);
    this.drawWay(moves);
  }

  drawWay(moves) {
    const shown = moves.slice(-40);
    const skipped = moves.length - shown.length;
    const items = shown.map((move) =>
      h("li", { title: move.event }, h("span", { class: "dim" }, `${move.event} → `), move.to_state),
    );
    this.length.textContent = moves.length === 1 ? "The way taken: 1 move" : `The way taken: ${moves.length} moves`;
    replace(this.steps, skipped ? h("li", { class: "dim" }, `${skipped} moves before`) : null, items);
  }

  // The edges that the run went along: those that it did not take lead through one another and say nothing.
  edges(taken) {
    const found = new Map();
    for (const row of this.rows) {
      const key = `${row.source}>${row.target}`;
      if (!taken.has(key)) continue;
      const entry = found.get(key) ?? [row.source, row.target, []];
      entry[2].push(row.guard ? `${row.event} [${row.guard}]` : row.event);
      found.set(key, entry);
    }
    return [...found.values()];
  }
}

export function isMove(transition) {
  return transition.from_state !== transition.to_state && transition.from_state !== "";
}

function count(transitions) {
  const taken = new Map();
  for (const one of transitions.filter(isMove)) {
    const key = `${one.from_state}>${one.to_state}`;
    taken.set(key, (taken.get(key) ?? 0) + 1);
  }
  return taken;
}

function marker() {
  const arrow = (id) =>
    svg(
      "marker",
      {
        id,
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerUnits: "userSpaceOnUse",
        markerWidth: 9,
        markerHeight: 9,
        orient: "auto",
      },
      svg("path", { d: "M0 0 L8 4 L0 8 z" }),
    );
  return svg("defs", {}, arrow("arrow"), arrow("arrow-way"));
}

function edge({ places, size, taken, latest }, source, target, events) {
  const times = taken.get(`${source}>${target}`) ?? 0;
  const isLatest = latest && latest.from_state === source && latest.to_state === target;
  const from = places.get(source);
  const to = places.get(target);
  const label =
    times > 1 ? svg("text", { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 4, class: "times" }, `${times}×`) : null;
  const line = svg("path", {
    d: curve(from, to, { ...size, boxes: [...places.values()] }),
    class: `edge ${times ? "taken" : ""} ${isLatest ? "latest" : ""}`,
    "marker-end": `url(#${times ? "arrow-way" : "arrow"})`,
  });
  return svg("g", {}, svg("title", {}, `${source} → ${target}: ${events.join(", ")}`), line, label);
}

function box(state, place, { current, visited, terminal, size }) {
  const been = visited.some((move) => move.from_state === state || move.to_state === state);
  const stopped = state === current && (state === "FAILED" || state === "CANCELLED");
  const kind = `${state === current ? "now" : been ? "been" : ""} ${stopped ? "stopped" : ""}`;
  return svg(
    "g",
    {
      class: `node ${kind} ${terminal.has(state) ? "terminal" : ""}`,
      "data-state": state,
      transform: `translate(${place.x} ${place.y})`,
    },
    svg("rect", {
      x: -size.halfWidth,
      y: -size.halfHeight,
      width: 2 * size.halfWidth,
      height: 2 * size.halfHeight,
      rx: 7,
    }),
    svg("text", { y: 4 }, state),
  );
}
