// One run: where it is, what it did, what it waits for, and why anything of it may be believed.

import { all, call, ORCHESTRATOR, PIPELINE, read, WORKFLOW } from "./api.js";
import { artifactsView } from "./artifacts.js";
import { claimsView } from "./claims.js";
import { debounce, h, replace, section } from "./dom.js";
import { glance } from "./feed.js";
import { headView } from "./head.js";
import { MachineView } from "./machine.js";
import { TasksView } from "./tasks.js";
import { drawWaterfall, TimelineView } from "./timeline.js";
import { watch } from "./watch.js";
import { ENDED, word } from "./words.js";

const REDRAW = 16;
const LOOK_AGAIN = 2000;
const SAID = new Set(["work_handed_in", "task_judged", "wave_verified", "assignment_ended"]);
const HANDED_OVER = new Set(["planned", "epic_resumed", "researched", "designed", "wave_verified"]);
const FINISHED = new Set(["COMPLETED", "COMPLETED_WITH_FAILURES", "ABORTED", "CANCELLED"]);
const PARTS = [
  ["machine", "Machine"],
  ["tasks", "Tasks"],
  ["claims", "Claims"],
  ["artifacts", "Artifacts"],
  ["trace", "Trace"],
  ["timeline", "Timeline"],
];

// Everything is asked for at once; the head is drawn as soon as it is known, the rest as it comes.
export async function show(main, { signal, id }) {
  document.title = "Run · Pointsman";
  const reading = Promise.all([read(ORCHESTRATOR, "GetRun", { run_id: id }), read(ORCHESTRATOR, "GetMachine")]);
  const [{ run }, machine] = await reading;
  if (signal.aborted) return;
  const page = new RunPage(run, machine, signal);
  replace(main, page.element);
  page.draw();
  performance.mark("first-view");
  page.start();
  glance(signal);
}

class RunPage {
  constructor(run, machine, signal) {
    Object.assign(this, { run, signal, transitions: [], planned: [], attempts: [], pipelines: new Map() });
    Object.assign(this, { said: 0, saidWhenRead: -1, handedOver: 0, drawn: {}, refreshing: false, again: false });
    this.head = h("div", { id: "run-head" });
    this.machine = new MachineView(machine);
    this.tasks = new TasksView();
    this.claims = h("div", { id: "claims-list" });
    this.artifacts = h("div", { id: "artifacts-list" });
    this.timeline = new TimelineView();
    this.trace = h("div", { id: "trace-list" });
    this.element = h(
      "div",
      { class: "run" },
      this.head,
      contents(),
      section("machine", "Machine", this.machine.element, this.machine.way),
      section("tasks", "Tasks and pipelines", this.tasks.element),
      section("claims", "Claims and evidence", this.claims),
      section("artifacts", "Artifacts", this.artifacts),
      section("trace", "Trace", this.trace),
      section("timeline", "Timeline", this.timeline.element),
    );
    this.redraw = debounce(() => signal.aborted || this.draw(), REDRAW);
    this.refresh = debounce(() => signal.aborted || this.reload(), REDRAW);
  }

  start() {
    const request = { run_id: this.run.id, after_seq: 0, view: "TRANSITION_VIEW_DETAILS" };
    watch(ORCHESTRATOR, "WatchRun", request, { onItem: (item) => this.take(item.transition), signal: this.signal });
    this.reloadRest().catch(() => this.refresh());
    const timer = setInterval(() => document.hidden || this.ended || this.reload(), LOOK_AGAIN);
    addEventListener("resize", this.redraw);
    this.signal.addEventListener("abort", () => {
      clearInterval(timer);
      removeEventListener("resize", this.redraw);
      this.timeline.close();
    });
  }

  take(transition) {
    this.transitions.push(transition);
    if (SAID.has(transition.event)) this.said += 1;
    if (HANDED_OVER.has(transition.event)) this.handedOver += 1;
    if (Number(transition.seq) > Number(this.run.seq)) {
      this.run = { ...this.run, state: `RUN_STATE_${transition.to_state}`, seq: transition.seq };
      this.refresh();
    }
    this.redraw();
  }

  get ended() {
    return ENDED.has(word(this.run.state));
  }

  async reload() {
    if (this.refreshing) {
      this.again = true;
      return;
    }
    this.refreshing = true;
    try {
      ({ run: this.run } = await call(ORCHESTRATOR, "GetRun", { run_id: this.run.id }, this.signal));
      this.redraw();
      await this.reloadRest();
    } catch (error) {
      if (!this.signal.aborted && error.reason !== "NOT_FOUND") setTimeout(() => this.refresh(), 1000);
    }
    this.refreshing = false;
    if (this.again) {
      this.again = false;
      this.refresh();
    }
  }

  async reloadRest() {
    await Promise.all([this.reloadTasks(), this.reloadPipelines(), this.reloadClaims()]);
    this.redraw();
  }

  async reloadTasks() {
    if (!this.run.epic_id) return;
    this.planned = await all(WORKFLOW, "GetWorkflow", { workflow_id: this.run.epic_id }, "tasks").catch(
      () => this.planned,
    );
  }

  async reloadPipelines() {
    const finished = (id) => FINISHED.has(word(this.pipelines.get(id)?.summary.state));
    const wanted = this.run.tasks.map((task) => task.pipeline_id).filter((id) => id && !finished(id));
    await Promise.all(
      wanted.slice(0, 64).map(async (id) => {
        const answer = await call(PIPELINE, "GetPipeline", { pipeline_id: id }, this.signal).catch(() => null);
        if (answer) this.pipelines.set(id, answer.pipeline);
      }),
    );
  }

  async reloadClaims() {
    const { said } = this;
    if (said === this.saidWhenRead) return;
    this.attempts = await all(ORCHESTRATOR, "GetEvidence", { run_id: this.run.id }, "attempts");
    this.saidWhenRead = said;
  }

  // Draw a part only where what it shows has changed: what has the focus, is open or is marked stays so.
  draw() {
    const { run, transitions, drawn } = this;
    const part = (name, value, work) => {
      const now = JSON.stringify(value);
      if (drawn[name] === now) return;
      drawn[name] = now;
      work();
    };
    const width = this.element.clientWidth;
    part("head", run, () => replace(this.head, headView(run)));
    part("machine", [run.state, transitions.length, width], () => this.machine.draw(word(run.state), transitions));
    part("tasks", [run.tasks, this.planned, [...this.pipelines], width], () =>
      this.tasks.draw(run, this.planned, this.pipelines),
    );
    part("claims", this.attempts, () => replace(this.claims, claimsView(this.attempts)));
    part("artifacts", this.handedOver, () => replace(this.artifacts, artifactsView(transitions)));
    part("trace", [transitions.length, this.ended || Math.floor(Date.now() / 1000)], () =>
      drawWaterfall(this.trace, transitions),
    );
    this.timeline.draw(transitions);
  }
}

function contents() {
  return h(
    "nav",
    { class: "contents", "aria-label": "Parts of the run" },
    PARTS.map(([id, title]) => h("a", { href: `#${id}` }, title)),
  );
}
