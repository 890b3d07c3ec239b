// @ts-check
// What people may do, each with its consequence said before it is done.

import { change, ORCHESTRATOR, PIPELINE, WORKFLOW } from "./api.js";
import { dialog, field } from "./dialogs.js";
import { h, toast } from "./dom.js";
import { plain, word } from "./words.js";

// For each answer: what it leads to, and which words go with it.
const ANSWERS = {
  RESUME_YES: {
    title: "resume it",
    then: "The unfinished work is taken up; this message is kept as the next epic.",
  },
  RESUME_NO: {
    title: "leave it",
    then: "The unfinished work stays where it is; the run goes on with its own message.",
  },
  SWITCH: { then: "The other run of the session is parked (its work stays resumable); this one goes on." },
  KEEP: { then: "This run is stored for later and ends; the other one goes on undisturbed." },
  MERGE: { then: "This message is handed to the other run as a change of requirement; this run ends." },
  CLARIFIED: {
    title: "clarify",
    then: "The run goes on with what you write here instead of its message.",
    text: "What was meant",
    confidence: true,
  },
  ACCEPT: { then: "The work is accepted on your word and counts as done.", task: true },
  REJECT: { then: "The work is rejected and done again.", text: "What is wrong with it", task: true },
  PROCEED: { then: "The plan is taken as it is; its open remarks become residual risks." },
  MODIFY: { then: "The plan is made anew with your remark.", text: "What to change" },
  ESCALATE: { then: "The plan is treated as not good enough; the run stops and asks again." },
  RAISE: { then: "The run may spend more and goes on at once.", budget: true },
  UNBLOCK: {
    then: "The dependency counts as there; tasks that waited for it become ready.",
    text: "Dependency (or all)",
    subjects: true,
  },
  RETRY: { then: "The failed task is tried again.", task: true },
  SKIP: {
    then: "The task is left out for good, and what depends on it goes on without it. Recorded as a risk.",
    text: "Why",
    task: true,
  },
  WAIVE: {
    then: "The hard constraint is taken out of the way. Recorded as a high risk.",
    text: "Constraint",
    subjects: true,
  },
  RESUME: { then: "The paused work goes on." },
  RESTART_STAGE: { then: "The stage and everything after it run again, with fresh retries.", stage: true },
  SKIP_STAGE: { then: "The stage counts as skipped, never as passed. Recorded as a risk.", stage: true },
  ALLOW: { then: "The agent that waits may do this once; the sandbox around it stays as it is." },
  DENY: { then: "The agent may not do this and goes on without." },
};
const PLAN_ACTIONS = [
  { title: "resume", method: "Resume", when: ["PAUSED"], then: "The paused workflow runs on." },
  {
    title: "unblock",
    method: "Unblock",
    when: ["BLOCKED"],
    then: "The dependency counts as there; tasks that waited for it become ready.",
    choose: "dependencies",
  },
  {
    title: "retry a task",
    method: "RetryTask",
    when: ["FAILED"],
    then: "The failed task goes back to pending and the workflow runs again.",
    choose: "FAILED",
  },
  {
    title: "skip a task",
    method: "SkipTask",
    when: ["FAILED", "BLOCKED"],
    then: "The task is left out for good. A skipped quality gate is recorded as a high risk.",
    choose: "OPEN",
    reason: true,
  },
  {
    title: "waive a constraint",
    method: "WaiveConstraint",
    when: ["PAUSED"],
    then: "The hard constraint is taken out of the way. Recorded as a high risk.",
    choose: "constraints",
    reason: true,
  },
  {
    title: "cancel the plan",
    method: "CancelPlan",
    when: ["PLANNED", "PAUSED", "BLOCKED", "FAILED", "IDLE"],
    then: "The plan ends; it can no longer be resumed.",
    danger: true,
  },
];

export const PIPELINE_ACTIONS = [
  {
    title: "restart from a stage",
    method: "RestartFrom",
    then: "The stage and everything after it run again, with fresh retries.",
    stage: true,
  },
  {
    title: "skip a stage",
    method: "SkipStage",
    then: "The stage counts as skipped, never as passed. Recorded as a risk.",
    stage: true,
  },
  { title: "cancel the pipeline", method: "CancelPipeline", then: "The pipeline ends at once.", danger: true },
];

export function planActions(status) {
  return PLAN_ACTIONS.filter((action) => action.when.includes(word(status)));
}

export function answerRule(kind) {
  return { title: plain(kind), then: "The answer is given.", ...ANSWERS[word(kind)] };
}

// One line for each thing that can be done: the button, and what comes of it.
export function choices(all) {
  return h(
    "ul",
    { class: "choices" },
    all.map(({ title, then, style, act }) =>
      h(
        "li",
        {},
        h("button", { type: "button", class: style, onclick: act }, title),
        h("span", { class: "dim" }, then),
      ),
    ),
  );
}

export function answerChoices(run, style = "") {
  return run.question.takes.map((kind) => {
    const { title, then } = answerRule(kind);
    return { title, then, style, act: () => askAnswer(run, kind) };
  });
}

const CANCELLED =
  "The run ends for good: its assignments, pipelines and workflow are cancelled. What was accepted so far stays.";

export function cancelChoice(run, title) {
  return { title, then: CANCELLED, style: "danger", act: () => askCancel(run) };
}

export function askAnswer(run, kind, given = {}) {
  const rule = answerRule(kind);
  const { question } = run;
  const fields = [
    rule.text &&
      field("text", rule.text, {
        list: rule.subjects ? question.subjects : [],
        value: given.text ?? (rule.subjects ? (question.subjects[0] ?? "") : ""),
        area: Boolean(given.text),
        required: true,
      }),
    rule.task &&
      field("task_id", "Task (empty: all that the question names)", {
        list: run.tasks.map((task) => task.task_id),
        value: given.task_id ?? "",
      }),
    rule.stage &&
      field("stage", "Stage", { list: question.subjects, value: question.subjects.at(-1) ?? "", required: true }),
    rule.confidence &&
      field("confidence", "How sure you are, 0 to 1", { type: "number", value: "1", step: "0.05", min: "0", max: "1" }),
    rule.budget && budgetFields(run),
  ];
  return dialog(rule.title, rule.then, fields, async (values) => {
    const sent = {
      run_id: run.id,
      question_id: question.id,
      answer: kind,
      text: values.text ?? "",
      task_id: values.task_id ?? "",
      stage: values.stage ?? "",
    };
    if (rule.confidence) sent.confidence = Number(values.confidence);
    if (rule.budget) sent.budget = budgetOf(values);
    await change(ORCHESTRATOR, "Answer", sent);
    toast(`Answered: ${rule.title}`, "good");
  });
}

export function askCancel(run) {
  return dialog(
    "Cancel the run",
    CANCELLED,
    [field("reason", "Why", {})],
    async ({ reason }) => {
      await change(ORCHESTRATOR, "CancelRun", { run_id: run.id, reason });
      toast("The run is cancelled", "good");
    },
    true,
  );
}

export function askChange(run) {
  const then = "Live work is cancelled, tasks are released and the plan is patched with what you write.";
  return dialog(
    "Change the requirement",
    then,
    [field("message", "What is wanted in addition or instead", { area: true, required: true })],
    async ({ message }) => {
      await change(ORCHESTRATOR, "ChangeRequirement", { run_id: run.id, message });
      toast("The requirement is changed", "good");
    },
  );
}

export function askPlan(action, workflow, tasks, done) {
  const choices = choicesFor(action, workflow, tasks);
  const fields = [
    action.choose && field("subject", "Which one", { list: choices, value: choices[0] ?? "", required: true }),
    action.reason && field("reason", "Why", { required: true }),
  ];
  return dialog(
    action.title,
    action.then,
    fields,
    async (values) => {
      await change(WORKFLOW, action.method, { workflow_id: workflow.workflow_id, ...planFields(action, values) });
      toast(`Done: ${action.title}`, "good");
      done();
    },
    action.danger,
  );
}

export function askPipeline(action, pipelineId, stages, done) {
  const fields = [
    action.stage && field("stage", "Stage", { list: stages, value: stages[0] ?? "", required: true }),
    field("reason", "Why", {}),
  ];
  const act = async (values) => {
    await change(PIPELINE, action.method, { pipeline_id: pipelineId, ...values });
    toast(`Done: ${action.title}`, "good");
    done();
  };
  return dialog(action.title, action.then, fields, act, action.danger);
}

function planFields(action, values) {
  if (action.method === "Unblock") return { dependency: values.subject };
  if (action.method === "WaiveConstraint") return { constraint_id: values.subject, reason: values.reason };
  if (action.method === "RetryTask") return { task_id: values.subject };
  return action.method === "SkipTask" ? { task_id: values.subject, reason: values.reason } : {};
}

function choicesFor(action, workflow, tasks) {
  if (action.choose === "dependencies") return workflow.progress?.blocking ?? [];
  if (action.choose === "constraints") return (workflow.constraints?.hard ?? []).map((one) => one.constraint_id);
  const wanted = action.choose === "FAILED" ? ["FAILED"] : ["FAILED", "BLOCKED", "PENDING"];
  return tasks.filter((task) => wanted.includes(word(task.status))).map((task) => task.spec.task_id);
}

// So much more than was spent that the next step does not ask again.
const ROOM = { assignments: 20 };

function budgetFields(run) {
  const more = (name) => {
    const limit = Number(run.budget?.[name] ?? 0);
    return String(limit ? Math.max(2 * limit, Number(run.usage?.[name] ?? 0) + Math.max(limit, ROOM[name] ?? 0)) : 0);
  };
  const isLate = run.question.subjects.includes("wall_clock");
  const hours = isLate ? Math.ceil((2 * (Date.now() - Date.parse(run.created_at))) / 3600000) : 0;
  return [
    field("assignments", "Assignments in all", { type: "number", min: "0", value: more("assignments") }),
    field("tokens", "Tokens in all (0: as it is)", { type: "number", min: "0", value: more("tokens") }),
    field("cost_micros", "Cost in millionths (0: as it is)", { type: "number", min: "0", value: more("cost_micros") }),
    field("hours", "Hours from the start (0: as it is)", { type: "number", min: "0", value: String(hours) }),
  ];
}

function budgetOf(values) {
  const budget = { assignments: Number(values.assignments), tokens: values.tokens, cost_micros: values.cost_micros };
  return Number(values.hours) ? { ...budget, wall_clock: `${Number(values.hours) * 3600}s` } : budget;
}
