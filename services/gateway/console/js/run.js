// @ts-check
// One run: what it asks, what was proven, the change itself, what its agents print, and how it came about.

import { AGENTS, all, call, ORCHESTRATOR, PIPELINE, read, WORKFLOW } from "./api.js";
import { artifactsView } from "./artifacts.js";
import { title } from "./counts.js";
import { h, replace, section, throttle } from "./dom.js";
import { headView } from "./head.js";
import { onKey } from "./keys.js";
import { MachineView } from "./machine.js";
import { OutputView } from "./output.js";
import { isAboutPlan, planGraph, planQuestion } from "./plan.js";
import { planOf } from "./plandoc.js";
import { PlanView } from "./planedit.js";
import { ReviewView } from "./review.js";
import { TasksView } from "./tasks.js";
import { TimelineView } from "./timeline.js";
import { TraceView } from "./trace.js";
import { watch } from "./watch.js";
import { details, ENDED, word } from "./words.js";

const REDRAW = 16;
const LOOK_AGAIN = 5000;
const SAID = new Set(["work_handed_in", "task_judged", "wave_verified", "assignment_ended"]);
const HANDED_OVER = new Set(["planned", "epic_resumed", "researched", "designed", "wave_verified"]);
const FINISHED = new Set(["COMPLETED", "COMPLETED_WITH_FAILURES", "ABORTED", "CANCELLED"]);
const ATTENTION_AT_END = { COMPLETE: "ATTENTION_DONE", CANCELLED: "ATTENTION_CANCELLED", FAILED: "ATTENTION_FAILED" };
const TABS = [
  ["review", "Review"],
  ["output", "Output"],
  ["plan", "Plan"],
  ["phases", "Phases"],
  ["journal", "Journal"],
  ["artifacts", "Artifacts"],
];
// Places inside a tab, by how their names begin.
const INSIDE = {
  line: "review",
  file: "review",
  claim: "review",
  criterion: "review",
  diff: "review",
  event: "journal",
  machine: "phases",
  timeline: "journal",
  trace: "journal",
  tasks: "plan",
  claims: "review",
};

// Everything is asked for at once; the head is drawn as soon as it is known, the rest as it comes.
export async function show(main, { signal, id }) {
  title("Run");
  const { run } = await read(ORCHESTRATOR, "GetRun", { run_id: id });
  if (signal.aborted) return;
  const page = new RunPage(run, signal);
  replace(main, page.element);
  page.draw();
  performance.mark("first-view");
  page.start();
}

class RunPage {
  run;
  signal;
  transitions = [];
  planned = [];
  attempts = [];
  pipelines = new Map();
  agents = new Map();
  said = 0;
  saidWhenRead = -1;
  seqWhenRead = "";
  handedOver = 0;
  drawn = {};
  refreshing = false;
  again = false;
  tab = "";
  /** @type {MachineView | null} */
  machine = null;

  constructor(run, signal) {
    Object.assign(this, { run, signal });
    this.head = h("div", { id: "run-head" });
    this.review = new ReviewView();
    this.output = new OutputView(run.id, signal);
    this.approval = h("div", {});
    this.plan = new PlanView();
    this.graph = h("div", {});
    this.tasks = new TasksView();
    this.artifacts = h("div", { id: "artifacts-list" });
    this.timeline = new TimelineView();
    this.trace = new TraceView();
    this.panels = new Map([
      ["review", section("review", "Review", this.review.element)],
      ["output", section("output", "What agents print", this.output.element)],
      ["plan", section("plan", "Plan", this.approval, this.plan.head, this.graph, this.plan.list, this.tasks.element)],
      ["phases", section("phases", "Every state")],
      ["journal", section("journal", "Trace and journal", this.trace.element, this.timeline.element)],
      ["artifacts", section("artifacts", "Artifacts", this.artifacts)],
    ]);
    this.tabs = h(
      "nav",
      { class: "contents", "aria-label": "Parts of the run" },
      TABS.map(([id, text]) => h("a", { href: `#${id}` }, text)),
    );
    this.element = h("div", { class: "run" }, this.head, this.tabs, [...this.panels.values()]);
    this.redraw = throttle(() => signal.aborted || this.draw(), REDRAW);
    this.refresh = throttle(() => signal.aborted || this.reload(), REDRAW);
    this.place = () => this.goTo(location.hash.slice(1));
  }

  start() {
    const request = { run_id: this.run.id, after_seq: 0, view: "TRANSITION_VIEW_DETAILS" };
    watch(ORCHESTRATOR, "WatchRun", request, { onItem: (item) => this.take(item.transition), signal: this.signal });
    this.reloadRest().catch(() => this.refresh());
    const timer = setInterval(() => document.hidden || this.ended || this.look(), LOOK_AGAIN);
    addEventListener("resize", this.redraw);
    addEventListener("placechange", this.place);
    this.place();
    onKey({ a: () => this.review.accept(), r: () => this.review.reject() }, this.signal);
    this.signal.addEventListener("abort", () => {
      clearInterval(timer);
      removeEventListener("resize", this.redraw);
      removeEventListener("placechange", this.place);
      this.timeline.close();
    });
  }

  // The tab that the address names, and the place in it; without one, the tab that what is asked is about.
  goTo(name) {
    const wanted = this.panels.has(name) ? name : INSIDE[name.split("-")[0]];
    this.tab = wanted || (name && this.tab) || (isAboutPlan(this.run.question) ? "plan" : "review");
    for (const [id, panel] of this.panels) panel.hidden = id !== this.tab;
    for (const anchor of this.tabs.children) {
      if (anchor.hash === `#${this.tab}`) anchor.setAttribute("aria-current", "true");
      else anchor.removeAttribute("aria-current");
    }
    if (this.tab === "output") this.output.start();
    if (this.tab === "phases") this.loadMachine();
    this.draw();
    if (name && !this.panels.has(name)) reveal(document.getElementById(name));
    if (name.startsWith("event-")) this.timeline.reveal(Number(name.slice(6)));
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

  take(transition) {
    this.transitions.push(transition);
    if (SAID.has(transition.event)) this.said += 1;
    if (HANDED_OVER.has(transition.event)) this.handedOver += 1;
    if (Number(transition.seq) > Number(this.run.seq)) {
      const ends = ATTENTION_AT_END[transition.to_state];
      const known = ends
        ? { attention: ends, question: undefined, waiting_for: undefined, ended_at: transition.at }
        : learned(this.run, transition);
      this.run = { ...this.run, state: `RUN_STATE_${transition.to_state}`, seq: transition.seq, ...known };
      this.refresh();
      if (ends) this.draw();
    }
    this.redraw();
  }

  get ended() {
    return ENDED.has(word(this.run.state));
  }

  // What changes without a transition: who is at work, and whether anybody could be. The line of a list says it.
  async look() {
    const wanted = { id_prefix: this.run.id, view: "RUN_VIEW_LINE", "page.page_size": 1 };
    const answer = await read(ORCHESTRATOR, "ListRuns", wanted).catch(() => null);
    const line = answer?.runs[0];
    if (!line || this.signal.aborted) return;
    if (line.seq !== this.run.seq) {
      this.refresh();
      return;
    }
    this.run = { ...this.run, attention: line.attention, waiting_for: line.waiting_for };
    this.redraw();
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

  // What has not changed since it was read is not read again.
  async reloadRest() {
    if (this.seqWhenRead === this.run.seq) return;
    const { seq } = this.run;
    await Promise.all([this.reloadTasks(), this.reloadPipelines(), this.reloadClaims(), this.reloadAgents()]);
    this.seqWhenRead = seq;
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

  // Who did which stage: the pipelines only know who handed it out.
  async reloadAgents() {
    const made = await all(AGENTS, "ListAssignments", { run_id: this.run.id }, "assignments").catch(() => []);
    this.output.know(made);
    for (const one of made) if (one.agent_id) this.agents.set(`${one.task_id}/${one.stage}`, one.agent_id);
  }

  async reloadClaims() {
    const { said } = this;
    if (said === this.saidWhenRead) return;
    this.attempts = await all(ORCHESTRATOR, "GetEvidence", { run_id: this.run.id }, "attempts");
    this.saidWhenRead = said;
  }

  // Draw a part only where it is looked at and what it shows has changed: what has the focus, is open or is marked stays so.
  draw() {
    const { run, transitions, drawn } = this;
    const part = (tab, name, value, work) => {
      if (tab && tab !== this.tab) return;
      const now = JSON.stringify(value);
      if (drawn[name] === now) return;
      drawn[name] = now;
      work();
    };
    const width = this.element.clientWidth;
    part("", "head", headOf(run), () => replace(this.head, headView(run)));
    part("review", "review", [this.attempts, run.question, run.acceptance_criteria], () =>
      this.review.draw(run, this.attempts),
    );
    part("phases", "machine", [run.state, transitions.length, width, Boolean(this.machine)], () =>
      this.machine?.draw(word(run.state), transitions),
    );
    part("plan", "approval", run.question, () => replace(this.approval, planQuestion(run)));
    const plan = planOf(transitions);
    part("plan", "plan", [run.question, plan], () => this.plan.draw(run, plan));
    part("plan", "graph", [run.tasks, this.planned, width], () =>
      replace(this.graph, planGraph(run, this.planned, Math.max(300, width - 40))),
    );
    part("plan", "tasks", [run.tasks, this.planned, [...this.pipelines], [...this.agents], width], () =>
      this.tasks.draw(run, this.planned, this.pipelines, this.agents),
    );
    part("artifacts", "artifacts", this.handedOver, () => replace(this.artifacts, artifactsView(transitions)));
    part("journal", "trace", [transitions.length, run.attention, this.ended || Math.floor(Date.now() / 1000)], () =>
      this.trace.draw(transitions, word(run.attention) === "STUCK"),
    );
    if (this.tab === "journal") this.timeline.draw(transitions);
  }
}

// What a transition says of a run by itself, before the run is read again.
function learned(run, transition) {
  if (transition.event !== "labelled") return {};
  const labels = Object.entries({ ...run.labels, ...details(transition).labels });
  return { labels: Object.fromEntries(labels.filter(([, value]) => value)) };
}

// Show a place, whatever it is folded into.
function reveal(place) {
  if (!place) return;
  for (let box = place.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  place.scrollIntoView({ block: "center" });
  place.classList.add("target");
}

// Without what changes all the time and is shown elsewhere.
function headOf(run) {
  return { ...run, seq: "", updated_at: "", usage: { ...run.usage, transitions: 0 } };
}
