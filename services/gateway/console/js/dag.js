// @ts-check
// One task's pipeline: its stages with rounds and verdicts, its barriers with who has arrived.

import { h, svg } from "./dom.js";
import { curve, ranks, snake } from "./layout.js";
import { age, clip, plain, tone, word } from "./words.js";

const BOX = { halfWidth: 64, halfHeight: 27 };
const CELL = { cellWidth: 168, cellHeight: 76, spread: false };

// agentOf: who did a stage, by its name.
export function pipelineView(pipeline, width, agentOf) {
  const stages = pipeline.stages.map((stage) => ({ ...stage, id: stage.node.stage }));
  const ids = stages.map((stage) => stage.id);
  const lines = stages.flatMap((stage) => stage.node.next.map((next) => [stage.id, next]));
  const { places, width: across, height } = snake(ids, ranks(ids, lines), width, CELL);
  const about = `Pipeline in state ${word(pipeline.summary.state)}: ${stages.map((stage) => `${stage.id} ${plain(stage.status)}`).join(", ")}`;
  return h(
    "div",
    { class: "graph" },
    svg(
      "svg",
      { viewBox: `0 0 ${across} ${height}`, width: across, height, role: "img", "aria-label": about },
      svg(
        "defs",
        {},
        svg(
          "marker",
          {
            id: "dag-arrow",
            viewBox: "0 0 8 8",
            refX: 7,
            refY: 4,
            markerUnits: "userSpaceOnUse",
            markerWidth: 9,
            markerHeight: 9,
            orient: "auto",
          },
          svg("path", { d: "M0 0 L8 4 L0 8 z" }),
        ),
      ),
      barriers(pipeline, stages, places),
      lines.map(([from, to]) =>
        svg("path", {
          class: "edge",
          d: curve(places.get(from), places.get(to), { ...BOX, boxes: [...places.values()] }),
          "marker-end": "url(#dag-arrow)",
        }),
      ),
      stages.map((stage) => box({ ...stage, agent_id: agentOf(stage.id) }, places.get(stage.id))),
    ),
  );
}

function barriers(pipeline, stages, places) {
  return pipeline.barriers.map((barrier) => {
    const members = stages
      .filter((stage) => stage.node.barrier_group === barrier.group)
      .map((stage) => places.get(stage.id));
    if (members.length === 0) return null;
    const left = Math.min(...members.map((place) => place.x)) - BOX.halfWidth - 8;
    const top = Math.min(...members.map((place) => place.y)) - BOX.halfHeight - 8;
    const right = Math.max(...members.map((place) => place.x)) + BOX.halfWidth + 8;
    const bottom = Math.max(...members.map((place) => place.y)) + BOX.halfHeight + 8;
    const state = barrier.resolved ? "resolved" : barrier.due_at ? `waits, ${age(barrier.created_at)}` : "not reached";
    return svg(
      "g",
      { class: "barrier", "data-barrier": barrier.group },
      svg("rect", { x: left, y: top, width: right - left, height: bottom - top, rx: 10 }),
      svg(
        "text",
        { x: left + 6, y: bottom + 12 },
        `barrier ${barrier.group}: ${barrier.completed.length} of ${barrier.total}, ${state}`,
      ),
    );
  });
}

function box(stage, place) {
  const status = word(stage.status);
  const verdict =
    word(stage.verdict) === "UNSPECIFIED" ? "" : ` ${word(stage.verdict)}${stage.degraded ? " (degraded)" : ""}`;
  const severity = word(stage.severity) === "UNSPECIFIED" ? "" : ` ${word(stage.severity)}`;
  const rounds = stage.delegations > 1 || stage.retries ? `round ${stage.delegations}, ${stage.retries} back` : "";
  const history = stage.retry_history.map((one) => `round ${one.round}: ${word(one.severity)}`).join("; ");
  return svg(
    "g",
    { class: `node stage ${tone(status)}`, "data-stage": stage.id, transform: `translate(${place.x} ${place.y})` },
    svg(
      "title",
      {},
      [stage.id, plain(status), stage.agent_id && `by ${stage.agent_id}`, history].filter(Boolean).join(" · "),
    ),
    svg("rect", { x: -BOX.halfWidth, y: -BOX.halfHeight, width: 2 * BOX.halfWidth, height: 2 * BOX.halfHeight, rx: 7 }),
    svg("text", { y: -10, class: "strong" }, clip(stage.id, 18)),
    svg("text", { y: 5 }, clip(`${plain(status)}${verdict}${severity}`, 22)),
    svg("text", { y: 19, class: "small" }, clip(rounds || stage.agent_id, 22)),
  );
}
