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
  if (dx === 0 && dy === 0) return loop(from, halfHeight);
  const between = (box, axis) =>
    box[axis] > Math.min(from[axis], to[axis]) && box[axis] < Math.max(from[axis], to[axis]);
  const near = (box, axis, half) => Math.abs(box[axis] - (from[axis] + to[axis]) / 2) < 1.6 * half;
  if (Math.abs(dx) <= halfWidth) {
    const blocked = boxes.some((box) => between(box, "y") && near(box, "x", halfWidth));
    return blocked ? beside(from, to, halfWidth) : down(from, to, halfHeight);
  }
  const blocked = Math.abs(dy) < 3 * halfHeight && boxes.some((box) => between(box, "x") && near(box, "y", halfHeight));
  return blocked ? over(from, to, halfHeight) : across(from, to, halfWidth);
}

function loop({ x, y }, halfHeight) {
  const top = y - halfHeight;
  return `M ${x - 14} ${top} C ${x - 30} ${top - 24} ${x + 30} ${top - 24} ${x + 14} ${top - 1}`;
}

function over(from, to, halfHeight) {
  const bow = Math.min(from.y, to.y) - halfHeight - 30;
  return `M ${from.x} ${from.y - halfHeight} C ${from.x} ${bow} ${to.x} ${bow} ${to.x} ${to.y - halfHeight - 2}`;
}

function beside(from, to, halfWidth) {
  const bow = Math.max(from.x, to.x) + halfWidth + 18;
  return `M ${from.x + halfWidth} ${from.y} C ${bow} ${from.y} ${bow} ${to.y} ${to.x + halfWidth + 2} ${to.y}`;
}

function across(from, to, halfWidth) {
  const side = Math.sign(to.x - from.x) * halfWidth;
  const middle = (from.x + to.x) / 2;
  const end = to.x - side - Math.sign(side) * 2;
  return `M ${from.x + side} ${from.y} C ${middle} ${from.y} ${middle} ${to.y} ${end} ${to.y}`;
}

function down(from, to, halfHeight) {
  const side = Math.sign(to.y - from.y) * halfHeight;
  const middle = (from.y + to.y) / 2;
  const end = to.y - side - Math.sign(side) * 2;
  return `M ${from.x} ${from.y + side} C ${from.x} ${middle} ${to.x} ${middle} ${to.x} ${end}`;
}
