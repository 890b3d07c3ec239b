// One run: where it is, what it did, what it waits for, and why anything of it may be believed.

import { all, call, read, ORCHESTRATOR, PIPELINE, WORKFLOW } from "./api.js";
import { askAnswer, askCancel, askChange } from "./actions.js";
import { artifactsView } from "./artifacts.js";
import { claimsView } from "./claims.js";
import { chip, debounce, h, replace, section } from "./dom.js";
import { MachineView } from "./machine.js";
import { TasksView } from "./tasks.js";
import { drawWaterfall, TimelineView } from "./timeline.js";
import { watch } from "./watch.js";
import { age, clock, ENDED, plain, seconds, tone, word } from "./words.js";

const REDRAW = 16;
const LOOK_AGAIN = 2000;
const EVIDENCE = new Set([
  "work_handed_in",
  "task_judged",
  "wave_verified",
  "planned",
  "epic_resumed",
  "researched",
  "designed",
]);

export async function show(main, { signal, id }) {
  document.title = `Run · Pointsman`;
  const [{ run }, machine] = await Promise.all([
    read(ORCHESTRATOR, "GetRun", { run_id: id }),
    read(ORCHESTRATOR, "GetMachine"),
  ]);
  if (signal.aborted) return;
  const page = new RunPage(run, machine, signal);
  replace(main, page.element);
  page.draw();
  page.start();
}

class RunPage {
  constructor(run, machine, signal) {
    Object.assign(this, {
      run,
      signal,
      transitions: [],
      planned: [],
      pipelines: new Map(),
      evidence: 0,
      refreshing: false,
    });
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
    const onItem = ({ transition }) => {
      this.transitions.push(transition);
      if (EVIDENCE.has(transition.event)) this.evidence += 1;
      if (Number(transition.seq) > Number(this.run.seq)) {
        this.run = { ...this.run, state: `RUN_STATE_${transition.to_state}`, seq: transition.seq };
        this.refresh();
      }
      this.redraw();
    };
    watch(ORCHESTRATOR, "WatchRun", { run_id: this.run.id, after_seq: 0 }, { onItem, signal: this.signal });
    this.reload();
    const timer = setInterval(() => document.hidden || this.ended || this.reload(), LOOK_AGAIN);
    const resized = debounce(() => this.draw(), 150);
    addEventListener("resize", resized);
    this.signal.addEventListener("abort", () => {
      clearInterval(timer);
      removeEventListener("resize", resized);
      this.timeline.close();
    });
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
      await Promise.all([this.reloadTasks(), this.reloadPipelines()]);
      this.redraw();
    } catch (error) {
      if (!this.signal.aborted && error.reason !== "NOT_FOUND") setTimeout(() => this.refresh(), 1000);
    }
    this.refreshing = false;
    if (this.again) {
      this.again = false;
      this.refresh();
    }
  }

  async reloadTasks() {
    if (!this.run.epic_id) return;
    this.planned = await all(WORKFLOW, "GetWorkflow", { workflow_id: this.run.epic_id }, "tasks").catch(
      () => this.planned,
    );
  }

  async reloadPipelines() {
    const finished = (id) =>
      ["COMPLETED", "COMPLETED_WITH_FAILURES", "ABORTED", "CANCELLED"].includes(
        word(this.pipelines.get(id)?.summary.state),
      );
    const wanted = this.run.tasks.map((task) => task.pipeline_id).filter((id) => id && !finished(id));
    await Promise.all(
      wanted.slice(0, 64).map(async (id) => {
        const answer = await call(PIPELINE, "GetPipeline", { pipeline_id: id }, this.signal).catch(() => null);
        if (answer) this.pipelines.set(id, answer.pipeline);
      }),
    );
  }

  draw() {
    replace(this.head, header(this.run));
    this.machine.draw(word(this.run.state), this.transitions);
    this.tasks.draw(this.run, this.planned, this.pipelines);
    if (this.evidence !== this.drawnEvidence) {
      this.drawnEvidence = this.evidence;
      replace(this.claims, claimsView(this.transitions));
      replace(this.artifacts, artifactsView(this.transitions));
    }
    drawWaterfall(this.trace, this.transitions);
    this.timeline.draw(this.transitions);
  }
}

function contents() {
  const parts = [
    ["machine", "Machine"],
    ["tasks", "Tasks"],
    ["claims", "Claims"],
    ["artifacts", "Artifacts"],
    ["trace", "Trace"],
    ["timeline", "Timeline"],
  ];
  return h(
    "nav",
    { class: "contents", "aria-label": "Parts of the run" },
    parts.map(([id, title]) => h("a", { href: `#${id}` }, title)),
  );
}

function header(run) {
  const state = word(run.state);
  const ended = ENDED.has(state);
  const buttons = ended
    ? []
    : [
        (run.question?.takes ?? []).map((kind) =>
          h("button", { type: "button", class: "primary", onclick: () => askAnswer(run, kind) }, plain(kind)),
        ),
        h("button", { type: "button", onclick: () => askChange(run) }, "change the requirement"),
        h("button", { type: "button", class: "danger", onclick: () => askCancel(run) }, "cancel"),
      ];
  return [
    h(
      "div",
      { class: "bar" },
      h("h1", {}, chip(state, tone(state)), " ", h("span", { class: "id" }, run.id)),
      h("div", { class: "actions" }, buttons),
    ),
    h("p", { class: "wanted" }, run.intent),
    run.question
      ? h("div", { class: "asked", role: "note" }, chip(plain(run.question.kind), "ask"), ` ${run.question.text}`)
      : null,
    facts(run),
    run.residual_risks.length
      ? h(
          "details",
          { open: true },
          h("summary", {}, `${run.residual_risks.length} residual risks`),
          h(
            "ul",
            {},
            run.residual_risks.map((risk) =>
              h("li", {}, chip(plain(risk.severity), tone(risk.severity)), ` ${risk.statement}`),
            ),
          ),
        )
      : null,
  ];
}

function facts(run) {
  const wait = run.waiting_for;
  const labels = Object.entries(run.labels).map(([key, value]) => chip(`${key}=${value}`, "dim"));
  const spent = (name) => `${run.usage?.[name] ?? 0} of ${Number(run.budget?.[name] ?? 0) || "no limit"}`;
  const known = [
    [
      "Waits for",
      wait
        ? [chip(plain(wait.kind), tone(wait.kind)), ` ${wait.who}: ${wait.action}, for ${age(wait.since)}`]
        : run.end_reason
          ? `nothing: ${run.end_reason}`
          : "nothing",
    ],
    ["Submitted", `${clock(run.created_at)}, ${age(run.created_at)} ago`],
    ["Confidence", run.confidence.toFixed(2)],
    ["Assignments", spent("assignments")],
    ["Transitions", spent("transitions")],
    ["Tokens", spent("tokens")],
    [
      "Cost",
      `${(Number(run.usage?.cost_micros ?? 0) / 1e6).toFixed(4)} of ${Number(run.budget?.cost_micros ?? 0) ? (Number(run.budget.cost_micros) / 1e6).toFixed(4) : "no limit"}`,
    ],
    [
      "Time",
      `${age(run.created_at, run.waiting_for ? Date.now() : Date.parse(run.updated_at))} of ${Math.round(seconds(run.budget?.wall_clock) / 3600)} h`,
    ],
    ["Epic", run.epic_id],
    ["Session", run.session_id],
    ["Accepted commit", run.accepted_commit],
    ["Trace", run.traceparent],
    ["Labels", labels.length ? labels : ""],
  ];
  return h(
    "dl",
    { class: "facts" },
    known
      .filter(([, value]) => value !== "")
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}
