// @ts-check
// What waits for a person without a run that could ask: workflows and pipelines that somebody uses alone.

import { askPipeline, askPlan, choices, PIPELINE_ACTIONS, planActions } from "./actions.js";
import { call, PIPELINE, WORKFLOW } from "./api.js";
import { ago, chip, h, keepCards } from "./dom.js";
import { Sweep } from "./sweep.js";
import { plain, word } from "./words.js";

const MOST = 200;

export function epicSweep() {
  const listed = { service: WORKFLOW, method: "ListResumable", items: "workflows" };
  return new Sweep({ ...listed, key: (one) => one.workflow_id, size: 6 });
}

export function pipelineSweep() {
  const request = { states: ["PIPELINE_STATE_ESCALATED"] };
  const listed = { service: PIPELINE, method: "ListPipelines", items: "pipelines", request };
  return new Sweep({ ...listed, key: (one) => one.pipeline_id, size: 6 });
}

export function drawEpics(holder, found, reload) {
  const key = (epic) => `${epic.workflow_id}/${epic.updated_at}`;
  keepCards(holder, found.slice(0, MOST), key, (epic) => epicCard(epic, reload), "There are none.");
}

function epicCard(epic, reload) {
  const act = async (action) => {
    const asked = { workflow_id: epic.workflow_id, page: { page_size: 1000 } };
    const { workflow, tasks } = await call(WORKFLOW, "GetWorkflow", asked);
    askPlan(action, workflow, tasks, reload);
  };
  const { completed, total } = epic.counts ?? { completed: 0, total: 0 };
  return card(
    epic.workflow_id,
    [chip(plain(epic.status), "ask"), h("span", { class: "dim" }, "changed ", ago(epic.updated_at), " ago")],
    epic.title || epic.intake_text || epic.workflow_id,
    `Waits for: ${epic.waits_for}. ${completed} of ${total} tasks are done.`,
    planActions(epic.status),
    act,
  );
}

export function drawPipelines(holder, found, reload) {
  const alone = found.filter((one) => !one.run_id).slice(0, MOST);
  const key = (one) => `${one.pipeline_id}/${one.updated_at}`;
  keepCards(holder, alone, key, (one) => pipelineCard(one, reload), "There are none.");
}

function pipelineCard(summary, reload) {
  const act = async (action) => {
    const { pipeline } = await call(PIPELINE, "GetPipeline", { pipeline_id: summary.pipeline_id });
    const stuck = pipeline.stages.filter((stage) => word(stage.status) === "ESCALATED");
    const others = pipeline.stages.filter((stage) => word(stage.status) !== "PENDING");
    askPipeline(
      action,
      summary.pipeline_id,
      [...new Set([...stuck, ...others].map((stage) => stage.node.stage))],
      reload,
    );
  };
  return card(
    summary.pipeline_id,
    [chip(plain(summary.state), "ask"), h("span", { class: "dim" }, "changed ", ago(summary.updated_at), " ago")],
    `Pipeline ${summary.pipeline_id}`,
    `${summary.finished_count} of ${summary.stage_count} stages are done; one cannot be believed and waits for you.`,
    PIPELINE_ACTIONS,
    act,
  );
}

// `all`: what can be done; `act`: how it is begun.
function card(key, head, title, text, all, act) {
  const lines = all.map((one) => ({ ...one, style: one.danger ? "danger" : "", act: () => act(one) }));
  return h(
    "article",
    { class: "card", "data-key": key },
    h("div", { class: "bar" }, head),
    h("p", { class: "question" }, title),
    h("p", {}, text),
    choices(lines),
  );
}
