// @ts-check
// One run: what it asks, what was proven, the change itself; the other parts come when somebody looks at them.

import { all, call, ORCHESTRATOR, read } from "./api.js";
import { title } from "./counts.js";
import { h, latest, nothing, replace, section, throttle } from "./dom.js";
import { headView } from "./head.js";
import { onKey } from "./keys.js";
import { isAboutPlan } from "./question.js";
import { ReviewView } from "./review.js";
import { watch } from "./watch.js";
import { ENDED, withLine, word } from "./words.js";

const REDRAW = 16;
const LOOK_AGAIN = 5000;
const SAID = new Set(["work_handed_in", "task_judged", "wave_verified", "assignment_ended"]);
const TABS = [
  ["review", "Review", "Review"],
  ["output", "Output", "What agents print"],
  ["plan", "Plan", "Plan"],
  ["phases", "Phases", "Every state"],
  ["journal", "Journal", "Trace and journal"],
  ["artifacts", "Artifacts", "Artifacts"],
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
  attempts = [];
  said = 0;
  saidWhenRead = -1;
  asked = "";
  drawn = {};
  tab = "";
  /** @type {import("./rest.js").RestOfRun | null} */
  rest = null;

  constructor(run, signal) {
    Object.assign(this, { run, signal });
    this.readAt = Number(run.seq);
    this.asked = run.question?.id ?? "";
    this.head = h("div", { id: "run-head" });
    this.review = new ReviewView();
    this.panels = new Map(TABS.map(([id, , text]) => [id, section(id, text)]));
    this.panels.get("review").append(this.review.element);
    this.tabs = h(
      "nav",
      { class: "contents", "aria-label": "Parts of the run" },
      TABS.map(([id, text]) => h("a", { href: `#${id}` }, text)),
    );
    this.element = h("div", { class: "run" }, this.head, this.tabs, [...this.panels.values()]);
    this.redraw = throttle(() => signal.aborted || this.draw(), REDRAW);
    this.refresh = latest(() => this.reading(() => this.reloadRun()));
    this.refreshRest = latest(() => this.reading(() => this.reloadRest()));
    this.place = () => this.goTo(location.hash.slice(1));
  }

  start() {
    const request = { run_id: this.run.id, after_seq: 0, view: "TRANSITION_VIEW_DETAILS", with_line: true };
    watch(ORCHESTRATOR, "WatchRun", request, { onItem: (item) => this.take(item), signal: this.signal });
    const timer = setInterval(() => document.hidden || this.ended || this.look(), LOOK_AGAIN);
    addEventListener("resize", this.redraw);
    addEventListener("placechange", this.place);
    this.place();
    onKey({ a: () => this.review.accept(), r: () => this.review.reject() }, this.signal);
    this.signal.addEventListener("abort", () => {
      clearInterval(timer);
      removeEventListener("resize", this.redraw);
      removeEventListener("placechange", this.place);
      this.rest?.close();
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
    this.refreshRest();
    this.draw();
    this.open(name).catch(() =>
      replace(this.panels.get(this.tab), nothing("It cannot be reached now; go there again.")),
    );
  }

  // What is behind the first part comes with the second script.
  async open(name) {
    if (this.tab !== "review" && !this.rest) {
      const { RestOfRun } = await import("./rest.js");
      if (this.signal.aborted) return;
      this.rest ??= new RestOfRun(this);
      this.refreshRest();
      this.draw();
    }
    await this.rest?.open(this.tab);
    if (name && !this.panels.has(name)) reveal(document.getElementById(name));
    if (name.startsWith("event-")) this.rest.timeline.reveal(Number(name.slice(6)));
  }

  take({ transition, line }) {
    this.transitions.push(transition);
    if (SAID.has(transition.event)) this.said += 1;
    if (SAID.has(transition.event) && Number(transition.seq) > this.readAt) this.refreshRest();
    if (line && Number(line.seq) > Number(this.run.seq)) {
      this.run = withLine(this.run, line);
      this.follow();
      this.refreshAll();
    }
    this.redraw();
  }

  // Whoever chose no part of the page is led to what is asked.
  follow() {
    const asked = this.run.question?.id ?? "";
    if (asked && asked !== this.asked && !location.hash) this.goTo("");
    this.asked = asked;
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
      this.refreshAll();
      return;
    }
    this.run = { ...this.run, attention: line.attention, waiting_for: line.waiting_for };
    this.redraw();
  }

  // Whoever cannot be reached now is asked again.
  async reading(work) {
    if (this.signal.aborted) return;
    try {
      await work();
    } catch (error) {
      if (!this.signal.aborted && error.reason !== "NOT_FOUND") setTimeout(() => this.refreshAll(), 1000);
    }
  }

  // The plan is read after its run, which names what to read.
  refreshAll() {
    if (this.tab !== "plan") this.refreshRest();
    this.refresh();
  }

  // What a line of the stream leaves out.
  async reloadRun() {
    const { run } = await call(ORCHESTRATOR, "GetRun", { run_id: this.run.id }, this.signal);
    if (Number(run.seq) >= Number(this.run.seq)) this.run = run;
    if (this.tab === "plan") this.refreshRest();
    this.redraw();
  }

  // What the part in sight shows beside the run; what has not changed since it was read is not read again.
  async reloadRest() {
    const { said } = this;
    if (this.tab === "review" && this.saidWhenRead !== said) {
      this.attempts = await all(ORCHESTRATOR, "GetEvidence", { run_id: this.run.id }, "attempts");
      this.saidWhenRead = said;
    }
    await this.rest?.reload(this.tab, this.run);
    this.redraw();
  }

  // Draw a part only where it is looked at and what it shows has changed: what has the focus, is open or is marked stays so.
  draw() {
    const { run, drawn } = this;
    const part = (tab, name, value, work) => {
      if (tab && tab !== this.tab) return;
      const now = JSON.stringify(value);
      if (drawn[name] === now) return;
      drawn[name] = now;
      work();
    };
    part("", "head", headOf(run), () => replace(this.head, headView(run)));
    part("review", "review", [this.attempts, run.question, run.acceptance_criteria], () =>
      this.review.draw(run, this.attempts),
    );
    this.rest?.draw(this, part);
  }
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
