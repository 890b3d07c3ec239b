// @ts-check
// The run's tasks: what each waits for, how far it is, and its pipeline.

import { pipelineView } from "./dag.js";
import { chip, h, nothing, replace, table, titled } from "./dom.js";
import { clip, gradeName, plain, tone, word } from "./words.js";

const COLUMNS = ["Task", "Run", "Workflow", "Depends on", "Blocked by", "Attempt", "Stages"];

function taskOf(run, pipelineId) {
  return run.tasks.find((task) => task.pipeline_id === pipelineId)?.task_id ?? "";
}

export class TasksView {
  constructor() {
    this.table = h("tbody", {});
    this.pipeline = h("div", { id: "pipeline" });
    this.chosen = "";
    this.list = table("task-table", "Tasks", COLUMNS, this.table);
    this.element = h("div", {}, this.list, this.pipeline);
  }

  draw(run, planned, pipelines, agents) {
    this.agents = agents;
    const byId = new Map(planned.map((task) => [task.spec.task_id, task]));
    const known = new Map(run.tasks.map((task) => [task.task_id, task]));
    const ids = [...new Set([...known.keys(), ...byId.keys()])];
    this.list.hidden = this.pipeline.hidden = ids.length === 0;
    replace(
      this.table,
      ids.map((id) => titled(COLUMNS, this.row(id, known.get(id), byId.get(id), pipelines, run))),
    );
    this.drawPipeline(run, pipelines);
  }

  row(id, task, plan, pipelines, run) {
    const depends = plan?.spec.depends ?? [];
    const blocked = plan?.spec.blocked_by ?? [];
    const show = task?.pipeline_id && pipelines.has(task.pipeline_id);
    const button = show
      ? h(
          "button",
          {
            type: "button",
            class: "quiet",
            "aria-pressed": String(this.current(run, pipelines) === task.pipeline_id),
            onclick: () => this.choose(task.pipeline_id, run, pipelines),
          },
          "pipeline",
        )
      : null;
    return h(
      "tr",
      { "data-task": id },
      h("th", { scope: "row" }, task?.name || plan?.spec.name || id, h("span", { class: "dim id" }, id)),
      h(
        "td",
        {},
        task ? chip(task.status, tone(task.status)) : "",
        task && gradeName(task.grade) ? [" ", chip(gradeName(task.grade), tone(gradeName(task.grade)))] : null,
        task?.rejection ? h("p", { class: "dim", title: task.rejection }, clip(task.rejection, 160)) : null,
      ),
      h(
        "td",
        {},
        plan ? chip(plain(plan.status), tone(plan.status)) : "",
        plan?.reason ? h("p", { class: "dim" }, plan.reason) : null,
      ),
      h("td", {}, depends.join(", ")),
      h(
        "td",
        {},
        blocked.map((one) => chip(one, "ask")),
      ),
      h("td", {}, task?.attempt ? String(task.attempt) : ""),
      h("td", {}, button),
    );
  }

  current(run, pipelines) {
    if (pipelines.has(this.chosen)) return this.chosen;
    const withOne = run.tasks.filter((task) => pipelines.has(task.pipeline_id));
    const busy = withOne.find((task) =>
      ["ACTIVE", "ESCALATED"].includes(word(pipelines.get(task.pipeline_id).summary.state)),
    );
    return (busy ?? withOne.at(-1))?.pipeline_id ?? "";
  }

  choose(id, run, pipelines) {
    this.chosen = id;
    this.drawPipeline(run, pipelines);
    for (const button of this.table.querySelectorAll("button")) {
      const task = run.tasks.find((one) => one.task_id === button.closest("tr").dataset.task);
      button.setAttribute("aria-pressed", String(task?.pipeline_id === id));
    }
  }

  drawPipeline(run, pipelines) {
    const pipeline = pipelines.get(this.current(run, pipelines));
    if (!pipeline) {
      replace(this.pipeline, nothing("No pipeline has started yet."));
      return;
    }
    const { summary } = pipeline;
    const risks = pipeline.residual_risks.map((risk) => chip(`${risk.stage}: ${plain(risk.kind)}`, "ask"));
    replace(
      this.pipeline,
      h(
        "h3",
        {},
        "Pipeline ",
        h("code", {}, summary.pipeline_id),
        " ",
        chip(plain(summary.state), tone(summary.state)),
        " ",
        h("span", { class: "dim" }, `${summary.finished_count} of ${summary.stage_count} stages`),
      ),
      pipelineView(
        pipeline,
        this.pipeline.clientWidth || 1000,
        (stage) => this.agents.get(`${summary.task_id || taskOf(run, summary.pipeline_id)}/${stage}`) ?? "",
      ),
      risks.length ? h("p", {}, "Not proven: ", risks) : null,
    );
  }
}
