// @ts-check
// Every element in every state, on one page: for whoever changes one of them.

import { title } from "./counts.js";
import { crewOf, crewView } from "./crew.js";
import { diffView } from "./diff.js";
import { ago, chip, claimed, gauge, h, link, nothing, replace, section, toast } from "./dom.js";
import { grades } from "./head.js";
import { rail } from "./phases.js";
import { PlanView } from "./planedit.js";
import { questionView } from "./question.js";
import { entryCard } from "./queue.js";
import { ReviewView } from "./review.js";
import { asks } from "./runs.js";
import { AGENTS, attempts, entries, life, NOW, PLAN, schedules } from "./samples.js";
import { scheduleCard } from "./schedules.js";
import { TraceView } from "./trace.js";
import { ATTENTION, PHASES, tone } from "./words.js";

const DIFF = [
  "diff --git a/src/parser.py b/src/parser.py",
  "--- a/src/parser.py",
  "+++ b/src/parser.py",
  "@@ -1,3 +1,3 @@ def fields(s):",
  " # split a line",
  '-    return s.split(",")',
  '+    return [x.strip() for x in s.split(",")]',
  "diff --git a/tests/test_parser.py b/tests/test_parser.py",
  "new file mode 100644",
  "--- /dev/null",
  "+++ b/tests/test_parser.py",
  "@@ -0,0 +1,2 @@",
  "+def test_fields():",
  '+    assert "b" in fields("a, b")',
  "",
].join("\n");

function sample(attention) {
  const wait = {
    kind: "WAIT_KIND_AGENT",
    who: "code",
    since: NOW(),
    holder: attention === "STUCK" ? "" : "vm-coder",
    heard_at: NOW(),
    agents_able: 0,
  };
  const question = {
    id: "q1",
    kind: "QUESTION_KIND_ACCEPTANCE",
    text: "Is it as asked?",
    takes: ["ANSWER_KIND_ACCEPT", "ANSWER_KIND_REJECT"],
    subjects: ["T1"],
    asked_at: NOW(),
  };
  return {
    attention: `ATTENTION_${attention}`,
    state: "RUN_STATE_CODER_EXEC",
    waiting_for: wait,
    question: attention === "NEEDS_YOU" ? question : undefined,
    end_reason: "cancelled: enough",
    ended_at: NOW(),
    grade: "GRADE_PROVEN",
    tasks: [],
    grades: { tasks: 3, proven: 2, unbroken: 1, on_word: 0, caught: 1, caught_then_proven: 1, forced: 0 },
  };
}

export async function show(main) {
  title("Components");
  replace(
    main,
    h("h1", {}, "Components"),
    words(),
    controls(),
    wholes(),
    reviews(),
    plans(),
    entriesView(),
    schedulesView(),
  );
}

// The review of an attempt in each state, asked about and not.
function reviews() {
  const view = (attempt, place) => {
    const review = new ReviewView();
    const run = { ...sample(place === 2 ? "NEEDS_YOU" : "WORKING"), acceptance_criteria: [] };
    review.draw(run, [attempt]);
    for (const one of review.element.querySelectorAll("[id]")) one.removeAttribute("id");
    return section(`review-${place}`, `A review: ${attempt.name}`, review.element);
  };
  const none = new ReviewView();
  none.draw({ ...sample("WORKING"), acceptance_criteria: PLAN.tasks[0].acceptance_criteria }, []);
  for (const one of none.element.querySelectorAll("[id]")) one.removeAttribute("id");
  return [section("review-none", "A review before any work", none.element), ...attempts().map(view)];
}

// A plan as it is read and as it is changed, who plays what, and a trace with a fold.
function plans() {
  const asked = { id: "run_1", question: { ...sample("NEEDS_YOU").question, kind: "QUESTION_KIND_DEBATE" } };
  const view = (isEdited) => {
    const plan = new PlanView();
    plan.draw(asked, PLAN);
    if (isEdited) plan.edit();
    const named = [plan.bar, plan.list, ...plan.bar.querySelectorAll("[id]")];
    for (const one of named) one.removeAttribute("id");
    return [plan.head, plan.list];
  };
  const trace = new TraceView();
  trace.draw(life(), false);
  return [
    section("plan-read", "A plan that is asked about", view(false)),
    section("plan-written", "A plan that is changed", view(true)),
    section("crew-part", "Who plays what", crewView(crewOf(AGENTS, "r"))),
    section("trace-part", "A trace, with its waits folded or not", trace.element),
  ];
}

function entriesView() {
  const cards = entries().map((one) => entryCard(one, () => {}));
  return section("entries-part", "Entries of a merge queue", h("div", { class: "cards" }, cards));
}

function schedulesView() {
  const cards = schedules().map((one) => scheduleCard(one, () => {}));
  return section("schedules-part", "Schedules", h("div", { class: "cards" }, cards));
}

// Chips, what runs ask, grades and phases.
function words() {
  const tones = ["good", "bad", "ask", "busy", "said", "dim"];
  return [
    section(
      "chips",
      "Chips: ours are solid, what an agent says is outlined",
      h(
        "p",
        {},
        tones.map((one) => chip(one, one)),
        claimed("agent says exit 0"),
        h("span", { class: "chip ours good" }, "we ran it: exit 0"),
      ),
    ),
    section(
      "attention",
      "What runs ask",
      h(
        "ul",
        { class: "plain-list" },
        Object.keys(ATTENTION).map((one) => h("li", {}, asks(sample(one)))),
      ),
    ),
    section(
      "head-parts",
      "Grades and phases",
      grades(sample("DONE")),
      Object.values(PHASES).map((states) => rail({ state: `RUN_STATE_${states[0]}` })),
      rail({ state: "RUN_STATE_FAILED" }),
    ),
  ];
}

// What is clicked and filled in.
function controls() {
  const button = (kind, more) => h("button", { type: "button", class: kind, ...more }, kind || "plain");
  return [
    section(
      "buttons",
      "Buttons",
      h(
        "p",
        { class: "actions" },
        ["", "primary", "danger", "quiet"].map((one) => button(one)),
        button("primary", { disabled: true }),
        button("", { "aria-pressed": "true" }),
        link("/components", "link"),
      ),
    ),
    section(
      "fields",
      "Fields",
      h(
        "p",
        { class: "field" },
        h("label", { for: "sample-text" }, "A text"),
        h("input", { id: "sample-text", value: "written" }),
      ),
      h(
        "p",
        { class: "field" },
        h("label", { for: "sample-area" }, "Several lines"),
        h("textarea", { id: "sample-area" }, "one\ntwo"),
      ),
      h("p", { class: "problem" }, "message: must not be empty"),
    ),
  ];
}

// Whole views, and what is left.
function wholes() {
  return [
    section("question", "A question", questionView(sample("NEEDS_YOU"))),
    section(
      "diff-part",
      "A diff",
      diffView(DIFF, new Map(), () => {}),
    ),
    section(
      "rest",
      "Gauges, ages, nothing",
      h(
        "p",
        {},
        [0.1, 0.5, 0.9, 1.4].map((share) => [gauge(share), " "]),
        ago(NOW()),
        " ago",
      ),
      nothing("Nothing is here."),
      nothing("loading"),
      h(
        "div",
        { class: "failure" },
        h("h3", {}, "This page cannot be shown"),
        h("p", {}, "Pointsman cannot be reached. This page comes by itself as soon as it can."),
      ),
      h(
        "p",
        {},
        ["live", "ready", "reconnecting", "signed out"].map((one) => [
          h("span", { class: "live", "data-state": one }, one),
          " ",
        ]),
      ),
      h("button", { type: "button", onclick: () => toast("A note that goes away", tone("PROVEN")) }, "toast"),
    ),
  ];
}
