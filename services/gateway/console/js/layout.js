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

// Ranks from left to right, then back from right to left below, as wide as there is room.
export function snake(nodes, rank, width, { cellWidth, cellHeight }) {
  const columns = Math.max(2, Math.floor(width / cellWidth));
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

// The line between two boxes, leaving and entering on the sides that face each other.
export function curve(from, to, { halfWidth, halfHeight }) {
  if (from.x === to.x && from.y === to.y) {
    const top = from.y - halfHeight;
    return `M ${from.x - 14} ${top} C ${from.x - 30} ${top - 24} ${from.x + 30} ${top - 24} ${from.x + 14} ${top - 1}`;
  }
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  if (Math.abs(dx) > halfWidth) {
    const side = Math.sign(dx) * halfWidth;
    const middle = from.x + side + (dx - 2 * side) / 2;
    return `M ${from.x + side} ${from.y} C ${middle} ${from.y} ${middle} ${to.y} ${to.x - side - Math.sign(dx) * 2} ${to.y}`;
  }
  const side = Math.sign(dy) * halfHeight;
  const middle = from.y + side + (dy - 2 * side) / 2;
  return `M ${from.x} ${from.y + side} C ${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y - side - Math.sign(dy) * 2}`;
}
