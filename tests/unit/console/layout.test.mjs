import assert from "node:assert/strict";
import { test } from "node:test";
import { curve, ranks, snake } from "../../../services/gateway/console/js/layout.js";

const SIZE = { halfWidth: 66, halfHeight: 15, cellWidth: 158, cellHeight: 46 };

// Points along a path of our own making: M, then C and L.
function points(path) {
  const numbers = path.match(/[CLM]|-?[\d.]+/g);
  const found = [];
  let at = [0, 0];
  for (let place = 0; place < numbers.length; ) {
    const kind = numbers[place];
    const count = { M: 2, L: 2, C: 6 }[kind];
    const given = numbers.slice(place + 1, place + 1 + count).map(Number);
    const end = given.slice(-2);
    const [one, two] = kind === "C" ? [given.slice(0, 2), given.slice(2, 4)] : [at, end];
    for (let step = 0; step <= 50 && kind !== "M"; step += 1) {
      const share = step / 50;
      const mix = (axis) => (1 - share) ** 3 * at[axis] + 3 * (1 - share) ** 2 * share * one[axis] + 3 * (1 - share) * share ** 2 * two[axis] + share ** 3 * end[axis];
      found.push([mix(0), mix(1)]);
    }
    at = end;
    place += 1 + count;
  }
  return found;
}

const MACHINE = [["A", "B"], ["B", "C"], ["B", "D"], ["C", "E"], ["D", "E"], ["A", "E"], ["B", "F"], ["E", "F"], ["F", "G"], ["G", "H"], ["H", "I"], ["I", "A"]];

for (const width of [1240, 700, 360])
  test(`no edge goes through a box that it does not belong to, ${width} wide`, () => {
    const nodes = [..."ABCDEFGHI"];
    const { places } = snake(nodes, ranks(nodes, MACHINE.slice(0, -1)), width, SIZE);
    const boxes = [...places.values()];
    for (const [from, to] of MACHINE.slice(0, -1)) {
      const path = curve(places.get(from), places.get(to), { ...SIZE, boxes });
      for (const [x, y] of points(path))
        for (const [name, box] of places)
          if (name !== from && name !== to)
            assert(Math.abs(x - box.x) >= SIZE.halfWidth || Math.abs(y - box.y) >= SIZE.halfHeight, `${from} to ${to} goes through ${name}: ${path}`);
    }
  });
