// @ts-check
// The parts of a run's page behind the first: output, plan, states, journal, artifacts.

import { AGENTS, all, call, ORCHESTRATOR, PIPELINE, read, WORKFLOW } from "./api.js";
import { artifactsView } from "./artifacts.js";
import { h, replace } from "./dom.js";
import { MachineView } from "./machine.js";
import { OutputView } from "./output.js";
import { planGraph, planQuestion } from "./plan.js";
import { planOf } from "./plandoc.js";
import { PlanView } from "./planedit.js";
import { TasksView } from "./tasks.js";
import { TimelineView } from "./timeline.js";
import { TraceView } from "./trace.js";
import { ENDED, word } from "./words.js";

const HANDED_OVER = new Set(["planned", "epic_resumed", "researched", "designed", "wave_verified"]);
const FINISHED = new Set(["COMPLETED", "COMPLETED_WITH_FAILURES", "ABORTED", "CANCELLED"]);
const MOST_PIPELINES = 64;

export class RestOfRun {
  signal;
  redraw;
  planned = [];
  pipelines = new Map();
  agents = new Map();
  seqWhenRead = {};
  /** @type {MachineView | null} */
  machine = null;

  // page: the run's page, with a panel for each part.
  constructor({ run, signal, panels, redraw }) {
    Object.assign(this, { signal, redraw });
    this.panels = panels;
    this.output = new OutputView(run.id, signal);
    this.approval = h("div", {});
    this.plan = new PlanView();
    this.graph = h("div", {});
    this.tasks = new TasksView();
    this.artifacts = h("div", { id: "artifacts-list" });
    this.timeline = new TimelineView();
    this.trace = new TraceView();
    panels.get("output").append(this.output.element);
    panels.get("plan").append(this.approval, this.plan.head, this.graph, this.plan.list, this.tasks.element);
    panels.get("journal").append(this.trace.element, this.timeline.element);
    panels.get("artifacts").append(this.artifacts);
  }

  close() {
    this.timeline.close();
  }

  async open(tab) {
    if (tab === "output") this.output.start();
    if (tab === "phases") await this.loadMachine();
  }

  // The table of states is asked for when somebody looks at it.
  async loadMachine() {
    if (this.machine) return;
    const machine = await read(ORCHESTRATOR, "GetMachine");
    if (this.machine) return;
    this.machine = new MachineView(machine);
    this.panels.get("phases").append(this.machine.element, this.machine.way);
    this.redraw();
  }

  // What a part shows beside the run; what has not changed since it was read is not read again.
  async reload(tab, run) {
    if (!["plan", "output"].includes(tab) || this.seqWhenRead[tab] === run.seq) return;
    const plan = tab === "plan" ? [this.reloadTasks(run), this.reloadPipelines(run)] : [];
    await Promise.all([this.reloadAgents(run), ...plan]);
    this.seqWhenRead[tab] = run.seq;
  }

  async reloadTasks(run) {
    if (!run.epic_id) return;
    this.planned = await all(WORKFLOW, "GetWorkflow", { workflow_id: run.epic_id }, "tasks").catch(() => this.planned);
  }

  async reloadPipelines(run) {
    const finished = (id) => FINISHED.has(word(this.pipelines.get(id)?.summary.state));
    const wanted = run.tasks.map((task) => task.pipeline_id).filter((id) => id && !finished(id));
    await Promise.all(
      wanted.slice(0, MOST_PIPELINES).map(async (id) => {
        const answer = await call(PIPELINE, "GetPipeline", { pipeline_id: id }, this.signal).catch(() => null);
        if (answer) this.pipelines.set(id, answer.pipeline);
      }),
    );
  }

  // Who did which stage: the pipelines only know who handed it out.
  async reloadAgents(run) {
    const made = await all(AGENTS, "ListAssignments", { run_id: run.id }, "assignments").catch(() => []);
    this.output.know(made);
    for (const one of made) if (one.agent_id) this.agents.set(`${one.task_id}/${one.stage}`, one.agent_id);
  }

  // part(tab, name, value, work) draws where the tab is looked at and the value has changed.
  draw({ run, transitions, element, tab }, part) {
    const width = tab === "plan" || tab === "phases" ? element.clientWidth : 0;
    part("phases", "machine", [run.state, transitions.length, width, Boolean(this.machine)], () =>
      this.machine?.draw(word(run.state), transitions),
    );
    if (tab === "plan") this.drawPlan(run, planOf(transitions), width, part);
    const handedOver = transitions.filter((one) => HANDED_OVER.has(one.event)).length;
    part("artifacts", "artifacts", handedOver, () => replace(this.artifacts, artifactsView(transitions)));
    const second = ENDED.has(word(run.state)) || Math.floor(Date.now() / 1000);
    part("journal", "trace", [transitions.length, run.attention, second], () =>
      this.trace.draw(transitions, word(run.attention) === "STUCK"),
    );
    if (tab === "journal") this.timeline.draw(transitions);
  }

  drawPlan(run, plan, width, part) {
    part("plan", "approval", run.question, () => replace(this.approval, planQuestion(run)));
    part("plan", "plan", [run.question, plan], () => this.plan.draw(run, plan));
    part("plan", "graph", [run.tasks, this.planned, width], () =>
      replace(this.graph, planGraph(run, this.planned, Math.max(300, width - 40))),
    );
    part("plan", "tasks", [run.tasks, this.planned, [...this.pipelines], [...this.agents], width], () =>
      this.tasks.draw(run, this.planned, this.pipelines, this.agents),
    );
  }
}
