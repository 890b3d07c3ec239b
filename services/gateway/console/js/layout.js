// @ts-check
// Where the boxes of a graph stand: layers by the longest way, in the order in which the nodes were given.

// nodes: ids; edges: [from, to]. Gives a rank for each node; edges that close a circle are left out of account.
export function ranks(nodes, edges) {
  const next = new Map(nodes.map((node) => [node, []]));
  for (const [from, to] of edges) if (from !== to && next.has(from) && next.has(to)) next.get(from).push(to);
  const order = forward(nodes, next);
  const place = new Map(order.map((node, index) => [node, index]));
  const rank = new Map(nodes.map((node) => [node, 0]));
  for (const node of order) {
    for (const target of next.get(node)) {
      if (place.get(target) > place.get(node)) rank.set(target, Math.max(rank.get(target), rank.get(node) + 1));
    }
  }
  return rank;
}

function forward(nodes, next) {
  const seen = new Set();
  const order = [];
  const visit = (node) => {
    if (seen.has(node)) return;
    seen.add(node);
    for (const target of [...next.get(node)].reverse()) visit(target);
    order.unshift(node);
  };
  if (nodes.length) visit(nodes[0]);
  for (const node of [...nodes].reverse()) visit(node);
  return order;
}

// Ranks from left to right, then back from right to left below, over all the room that there is.
export function snake(nodes, rank, width, { cellWidth: least, cellHeight, spread = true }) {
  const columns = Math.max(2, Math.floor(width / least));
  const cellWidth = spread ? Math.max(least, width / columns) : least;
  const layers = [];
  for (const node of nodes) (layers[rank.get(node)] ??= []).push(node);
  const places = new Map();
  let top = 0;
  for (let start = 0; start < layers.length; start += columns) {
    const band = layers.slice(start, start + columns);
    const tallest = Math.max(...band.map((layer) => layer?.length ?? 0));
    band.forEach((layer, index) => {
      const column = (start / columns) % 2 === 0 ? index : columns - 1 - index;
      (layer ?? []).forEach((node, row) => {
        const offset = (tallest - layer.length) / 2;
        places.set(node, { x: (column + 0.5) * cellWidth, y: top + (row + offset + 0.5) * cellHeight });
      });
    });
    top += tallest * cellHeight + 26;
  }
  return { places, width: columns * cellWidth, height: top };
}

// The line between two boxes, leaving and entering on the sides that face each other, and round what stands between.
export function curve(from, to, { halfWidth, halfHeight, boxes = [] }) {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const size = { halfWidth, halfHeight };
  if (dx === 0 && dy === 0) return loop(from, halfHeight);
  const others = boxes.filter((box) => box !== from && box !== to);
  const crossed = (line) => others.some((box) => touches(line, box, size));
  /** @type {((from: any, to: any, how: any) => any)[]} */
  const ways =
    Math.abs(dx) <= halfWidth
      ? [down, beside]
      : Math.abs(dy) > 4 * halfHeight
        ? [down, across, around]
        : [across, over, around];
  const lines = ways.map((way) => way(from, to, { ...size, others }));
  return pathOf(lines.find((line) => !crossed(line)) ?? lines.at(-1));
}

// Whether a line, a start with curves or straight pieces to points, goes through a box.
function touches(line, { x, y }, { halfWidth, halfHeight }) {
  const inside = ([left, top]) => Math.abs(left - x) < halfWidth + 2 && Math.abs(top - y) < halfHeight + 2;
  return samples(line).some(inside);
}

const STEPS = 24;

function samples([start, ...pieces]) {
  const found = [];
  let at = start;
  for (const piece of pieces) {
    const end = piece.at(-1);
    const [one, two] = piece.length === 3 ? piece : [at, end];
    for (let step = 0; step <= STEPS; step += 1) found.push(bezier(at, one, two, end, step / STEPS));
    at = end;
  }
  return found;
}

function bezier(start, one, two, end, share) {
  const rest = 1 - share;
  const weights = [rest ** 3, 3 * rest ** 2 * share, 3 * rest * share ** 2, share ** 3];
  const at = (axis) => [start, one, two, end].reduce((sum, point, place) => sum + weights[place] * point[axis], 0);
  return [at(0), at(1)];
}

function pathOf([start, ...pieces]) {
  const text = (point) => point.map((one) => Math.round(10 * one) / 10).join(" ");
  return `M ${text(start)} ${pieces.map((piece) => `${piece.length === 3 ? "C" : "L"} ${piece.map(text).join(" ")}`).join(" ")}`;
}

function loop({ x, y }, halfHeight) {
  const top = y - halfHeight;
  return pathOf([
    [x - 14, top],
    [
      [x - 30, top - 24],
      [x + 30, top - 24],
      [x + 14, top - 1],
    ],
  ]);
}

// A bow above everything between them.
function over(from, to, { halfHeight }) {
  const bow = Math.min(from.y, to.y) - halfHeight - 30;
  const end = [to.x, to.y - halfHeight - 2];
  return [
    [from.x, from.y - halfHeight],
    [[from.x, bow], [to.x, bow], end],
  ];
}

function beside(from, to, { halfWidth }) {
  const bow = Math.max(from.x, to.x) + halfWidth + 18;
  const end = [to.x + halfWidth + 2, to.y];
  return [
    [from.x + halfWidth, from.y],
    [[bow, from.y], [bow, to.y], end],
  ];
}

function across(from, to, { halfWidth }) {
  const side = Math.sign(to.x - from.x) * halfWidth;
  const middle = (from.x + to.x) / 2;
  const end = [to.x - side - Math.sign(side) * 2, to.y];
  return [
    [from.x + side, from.y],
    [[middle, from.y], [middle, to.y], end],
  ];
}

function down(from, to, { halfHeight }) {
  const side = Math.sign(to.y - from.y) * halfHeight;
  const middle = (from.y + to.y) / 2;
  const end = [to.x, to.y - side - Math.sign(side) * 2];
  return [
    [from.x, from.y + side],
    [[from.x, middle], [to.x, middle], end],
  ];
}

const GAP = 12;
const CORNER = 8;

// Up or down between the rows, along them, and down the gap before the box: nothing stands there.
function around(from, to, { halfWidth, halfHeight, others }) {
  const side = Math.sign(to.x - from.x);
  const gap = to.x - side * (halfWidth + GAP);
  const [left, right] = [Math.min(from.x, gap), Math.max(from.x, gap)];
  const between = others.filter((box) => box.x + halfWidth > left && box.x - halfWidth < right);
  const near = between.filter((box) => Math.abs(box.y - from.y) < 6 * halfHeight);
  const top = Math.min(from.y, ...near.map((box) => box.y)) - halfHeight - GAP;
  const end = [to.x - side * (halfWidth + 2), to.y];
  const rise = (level) => [
    [from.x, from.y - halfHeight],
    [[from.x, level + CORNER]],
    [
      [from.x, level],
      [from.x, level],
      [from.x + side * CORNER, level],
    ],
  ];
  if (Math.abs(to.y - top) < 2 * CORNER) return [...rise(to.y), [end]];
  const turn = Math.sign(to.y - top);
  return [
    ...rise(top),
    [[gap - side * CORNER, top]],
    [
      [gap, top],
      [gap, top],
      [gap, top + turn * CORNER],
    ],
    [[gap, to.y - turn * CORNER]],
    [[gap, to.y], [gap, to.y], end],
  ];
}
