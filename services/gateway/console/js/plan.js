// @ts-check
// The plan: tasks and what they wait for, as a graph and as a table; with its approval where it is asked for.

import { h, nothing, svg } from "./dom.js";
import { curve, ranks, snake } from "./layout.js";
import { isAboutPlan, questionView } from "./question.js";
import { clip, gradeName, plain, tone, word } from "./words.js";

const BOX = { halfWidth: 84, halfHeight: 24 };
const CELL = { cellWidth: 204, cellHeight: 70, spread: false };

// The other questions about a plan; whether it is good as it is, the plan's own view asks.
export function planQuestion(run) {
  return isAboutPlan(run.question) && word(run.question.kind) !== "DEBATE" ? questionView(run) : null;
}

export function planGraph(run, planned, width) {
  const specs = new Map(planned.map((task) => [task.spec.task_id, task.spec]));
  const known = new Map(run.tasks.map((task) => [task.task_id, task]));
  const ids = [...new Set([...known.keys(), ...specs.keys()])].slice(0, 200);
  if (ids.length === 0) return nothing("There is no plan yet.");
  const lines = ids.flatMap((id) =>
    (specs.get(id)?.depends ?? []).filter((one) => ids.includes(one)).map((from) => [from, id]),
  );
  const { places, width: across, height } = snake(ids, ranks(ids, lines), width, CELL);
  const boxes = [...places.values()];
  const about = `The plan: ${ids.map((id) => `${id} ${known.get(id)?.status ?? "planned"}`).join(", ")}`;
  return h(
    "div",
    { class: "graph", id: "plan-graph" },
    svg(
      "svg",
      { viewBox: `0 0 ${across} ${height}`, width: across, height, role: "img", "aria-label": about },
      lines.map(([from, to]) =>
        svg("path", { class: "edge taken", d: curve(places.get(from), places.get(to), { ...BOX, boxes }) }),
      ),
      ids.map((id) => box(id, places.get(id), known.get(id), specs.get(id))),
    ),
  );
}

function box(id, place, task, spec) {
  const status = task?.status ?? "pending";
  const grade = gradeName(task?.grade);
  const look = grade === "PROVEN" ? "good" : status === "accepted" ? "said" : tone(status);
  const name = task?.name || spec?.name || id;
  return svg(
    "g",
    { class: `node stage ${look}`, "data-plan": id, transform: `translate(${place.x} ${place.y})` },
    svg("title", {}, `${id}: ${name}`),
    svg("rect", { x: -BOX.halfWidth, y: -BOX.halfHeight, width: 2 * BOX.halfWidth, height: 2 * BOX.halfHeight, rx: 7 }),
    svg("text", { y: -5, class: "strong" }, clip(`${id} ${name}`, 24)),
    svg(
      "text",
      { y: 12 },
      clip([plain(status), grade, task?.attempt > 1 ? `attempt ${task.attempt}` : ""].filter(Boolean).join(" · "), 28),
    ),
  );
}
