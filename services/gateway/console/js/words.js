// @ts-check
// Enums, times and numbers as people read them.

export const RUN_STATES = [
  "BOOT",
  "IDLE_PROBE_BD",
  "RESUME_ASK",
  "RESUME_PLAN",
  "IDLE",
  "INTAKE",
  "ASK_SWITCH",
  "EPIC_SYNC",
  "PLAN_BASELINE",
  "PLAN_REVIEW",
  "OBSERVE",
  "RESEARCH_FANOUT",
  "RESEARCH_INGEST",
  "RESEARCH_EVAL",
  "WAIT_OTHERS",
  "DETAIL_DESIGN",
  "CODER_HANDOFF",
  "SCHEDULE",
  "QUEUE",
  "DISPATCH",
  "CODER_EXEC",
  "REVIEW_ACCEPT",
  "REPLAN_PATCH",
  "COMPLETE",
  "CANCELLED",
  "FAILED",
];
export const ENDED = new Set(["COMPLETE", "CANCELLED", "FAILED"]);

// What a run asks of whoever looks: the same words as `pointsman runs`.
export const ATTENTION = {
  NEEDS_YOU: "needs you",
  STUCK: "stuck",
  WORKING: "working",
  FAILED: "failed",
  DONE: "done",
  CANCELLED: "cancelled",
};

// The six phases that people think in, and the states of the machine behind each.
export const PHASES = {
  understand: ["BOOT", "IDLE_PROBE_BD", "RESUME_ASK", "RESUME_PLAN", "IDLE", "INTAKE", "ASK_SWITCH", "EPIC_SYNC"],
  plan: ["PLAN_BASELINE", "PLAN_REVIEW", "REPLAN_PATCH"],
  research: ["OBSERVE", "RESEARCH_FANOUT", "RESEARCH_INGEST", "RESEARCH_EVAL", "WAIT_OTHERS"],
  build: ["DETAIL_DESIGN", "CODER_HANDOFF", "SCHEDULE", "QUEUE", "DISPATCH", "CODER_EXEC"],
  prove: ["REVIEW_ACCEPT"],
  deliver: ["COMPLETE", "CANCELLED", "FAILED"],
};

export function phaseOf(state) {
  return Object.keys(PHASES).find((phase) => PHASES[phase].includes(word(state))) ?? "understand";
}

const STATES = {
  BOOT: "just submitted",
  IDLE_PROBE_BD: "looks for unfinished work",
  RESUME_ASK: "asks whether to resume",
  RESUME_PLAN: "takes up unfinished work",
  IDLE: "about to begin",
  INTAKE: "weighs the request",
  ASK_SWITCH: "asks how to go on",
  EPIC_SYNC: "stores the request",
  PLAN_BASELINE: "plans",
  PLAN_REVIEW: "has its plan judged",
  OBSERVE: "says what to find out",
  RESEARCH_FANOUT: "researches",
  RESEARCH_INGEST: "reads a report",
  RESEARCH_EVAL: "weighs the research",
  WAIT_OTHERS: "waits for more reports",
  DETAIL_DESIGN: "designs",
  CODER_HANDOFF: "hands the work out",
  SCHEDULE: "looks for room",
  QUEUE: "waits for room",
  DISPATCH: "starts tasks",
  CODER_EXEC: "builds",
  REVIEW_ACCEPT: "proves the work",
  REPLAN_PATCH: "plans anew",
  COMPLETE: "done",
  CANCELLED: "cancelled",
  FAILED: "failed",
};

// A state of a run as people say it.
export function stateWord(state) {
  return STATES[word(state)] ?? plain(state);
}

// Why a person is asked, in one or two words.
const QUESTIONS = {
  RESUME: "resume?",
  CONFLICT: "two runs",
  LOW_CONFIDENCE: "what is meant?",
  FEEDBACK_ESCALATED: "plan not passed",
  REPLAN_LIMIT: "planned too often",
  DEBATE: "judge the plan",
  ACCEPTANCE: "accept",
  BUDGET: "budget",
  PAUSED: "paused",
  BLOCKED: "blocked",
  PIPELINE_ESCALATED: "stage stopped",
  PERMISSION: "permission?",
};

// What a question asks for; work that failed is no lack of confidence.
export function questionWord(question) {
  const kind = word(question.kind);
  if (kind === "LOW_CONFIDENCE" && /failed too often/.test(question.text)) return "work failed";
  return QUESTIONS[kind] ?? plain(kind);
}

const STEERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const HEAPS = /(\p{M}{3})\p{M}+/gu;

// Somebody's text without what reaches beyond itself: characters that turn the direction are named, heaps of marks cut.
export function tame(text) {
  return text
    .replace(STEERING, (letter) => `[U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`)
    .replace(HEAPS, "$1");
}

export function money(micros) {
  const amount = Number(micros ?? 0) / 1e6;
  return amount ? `$${amount.toFixed(2)}` : "";
}

const PREFIXES =
  /^(RUN_STATE|WAIT_KIND|QUESTION_KIND|ANSWER_KIND|TASK_STATUS|WORKFLOW_STATUS|STAGE_STATUS|STAGE_KIND|PIPELINE_STATE|VERDICT|SEVERITY|AGENT_STATE|ASSIGNMENT_STATE|CAPABILITY|PURPOSE|EVIDENCE_KIND|CLAIM_STATUS|FILE_CHANGE|MODE|CONFIDENCE|ROUTE_TARGET|DEBATE_BYPASS|DEBATE|STAKES|TRIGGER_KIND|PLANNING_TRIGGER|REVIEW_VERDICT|PHASE|RISK_KIND|POLICY|PAUSE_CAUSE|GRADE|ATTENTION|TEST_OUTCOME|ENTRY_STATE|SCHEDULE_STATE|MISSED_POLICY|OVERLAP_POLICY|FINDING_KIND|LIMIT_KIND)_/;

export function word(value) {
  return String(value ?? "").replace(PREFIXES, "");
}

// What work is worth, in words; nothing for work that is not graded.
export function gradeName(value) {
  const name = word(value);
  return name === "" || name === "UNSPECIFIED" ? "" : name.replaceAll("_", " ");
}

export function plain(value) {
  return word(value).toLowerCase().replaceAll("_", " ");
}

const TONES = {
  COMPLETE: "said",
  NEEDS_YOU: "ask",
  STUCK: "bad",
  PROVEN: "good",
  UNBROKEN: "busy",
  "ON WORD": "ask",
  FORCED: "bad",
  COMPLETED: "said",
  PASSED: "said",
  PASS: "said",
  accepted: "said",
  SUPPORTED: "good",
  DONE: "dim",
  WORKING: "busy",
  FAILED: "bad",
  FAIL: "bad",
  rejected: "bad",
  UNSUPPORTED: "bad",
  MISSING: "bad",
  LOST: "bad",
  EXHAUSTED: "bad",
  ABORTED: "bad",
  CRITICAL: "bad",
  CANCELLED: "dim",
  SKIPPED: "dim",
  IDLE: "dim",
  PENDING: "dim",
  pending: "dim",
  abandoned: "dim",
  UNSPECIFIED: "dim",
  ASK_SWITCH: "ask",
  RESUME_ASK: "ask",
  PERSON: "ask",
  ASKED: "ask",
  LANDED: "good",
  REJECTED: "bad",
  QUEUED: "dim",
  PAUSED: "ask",
  BLOCKED: "ask",
  ESCALATED: "ask",
  PAUSE: "ask",
  BUDGET: "ask",
  DEPENDENCY: "ask",
  STALE: "ask",
  HIGH: "ask",
  TIMED_OUT: "bad",
  COMPLETED_WITH_FAILURES: "ask",
  QUEUE: "ask",
  ACTIVE: "busy",
  IN_PROGRESS: "busy",
  running: "busy",
  reviewing: "busy",
  LEASED: "busy",
  READY: "busy",
};

export function tone(value) {
  return TONES[word(value)] ?? "busy";
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

export function duration(milliseconds) {
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 1) return `${Math.round(milliseconds)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  const hours = Math.floor((seconds % 86400) / 3600);
  return `${Math.floor(seconds / 86400)} d${hours ? ` ${hours} h` : ""}`;
}

export function age(timestamp, now = Date.now()) {
  if (!timestamp) return "";
  const seconds = Math.max(0, Math.floor((now - Date.parse(timestamp)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

// Made once, when it is first needed: a formatter costs more than a thousand uses of it.
const formatters = new Map();

function formatted(style, timestamp) {
  if (!formatters.has(style)) formatters.set(style, new Intl.DateTimeFormat(undefined, STYLES[style]));
  return formatters.get(style).format(new Date(timestamp));
}

/** @type {Record<string, Intl.DateTimeFormatOptions>} */
const STYLES = { both: { dateStyle: "medium", timeStyle: "medium" }, time: { timeStyle: "medium" } };

export function clock(timestamp) {
  return timestamp ? formatted("both", timestamp) : "";
}

export function timeOfDay(timestamp) {
  return formatted("time", timestamp);
}

export function seconds(text) {
  return text ? Number.parseFloat(text) : 0;
}

function amount(number) {
  if (number >= 1e6) return `${Math.round(number / 1e5) / 10} M`;
  return number >= 1e4 ? `${Math.round(number / 100) / 10} k` : String(number);
}

// What a run may spend and has spent, where there is a limit; `share` is how much of it is gone.
export function limits(run) {
  const used = run.usage ?? {};
  const given = run.budget ?? {};
  const held = run.held ?? {};
  const ended = ENDED.has(word(run.state)) ? Date.parse(run.updated_at) : Date.now();
  const cost = (micros) => (Number(micros ?? 0) / 1e6).toFixed(2);
  /** @type {[string, number, number, (number: number) => string, number?][]} */
  const known = [
    ["Assignments", Number(used.assignments), Number(given.assignments), amount],
    ["Transitions", Number(used.transitions), Number(given.transitions), amount],
    ["Tokens", Number(used.tokens), Number(given.tokens), amount, Number(held.tokens)],
    ["Cost", Number(used.cost_micros), Number(given.cost_micros), cost, Number(held.cost_micros)],
    ["Time", ended - Date.parse(run.created_at), 1000 * seconds(given.wall_clock), duration],
  ];
  return known
    .filter(([, , limit]) => limit > 0)
    .map(([name, spent, limit, text, reserved]) => ({
      name,
      used: text(spent || 0),
      held: reserved ? text(reserved) : "",
      limit: text(limit),
      share: (spent || 0) / limit,
    }));
}

// The facts of an event in one line, without what is empty.
export function facts(value, depth = 0) {
  if (value === null || value === "" || value === false) return [];
  if (/_UNSPECIFIED$/.test(value)) return [];
  if (typeof value !== "object") return [shortId(String(value).slice(0, 200))];
  if (Array.isArray(value)) return depth > 1 ? [] : value.slice(0, 4).flatMap((one) => facts(one, depth + 1));
  return Object.entries(value).flatMap(([name, item]) => {
    const inner = facts(item, depth + 1);
    return inner.length === 0 || depth > 2
      ? []
      : [`${name.replace(/_id$/, "").replaceAll("_", " ")} ${item === true ? "" : inner.join(" ")}`.trim()];
  });
}

export function clip(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

export function shortId(id) {
  return id.length > 20 && !id.includes(" ") ? `${id.slice(0, 8)}…${id.slice(-6)}` : id;
}

const NOT_IN_A_LINE = new Set([
  "tasks",
  "residual_risks",
  "acceptance_criteria",
  "traceparent",
  "template",
  "accepted_commit",
  "decision_id",
]);

// A run that was read whole, and how it stands now: what a line leaves out or cuts stays as it was.
export function withLine(run, line) {
  const given = Object.entries(line).filter(([name]) => !NOT_IN_A_LINE.has(name));
  const whole = (before, now) => (before?.startsWith(now) ? before : now);
  const { question, waiting_for, ended_at } = line;
  return {
    ...run,
    ...Object.fromEntries(given),
    intent: whole(run.intent, line.intent),
    end_reason: line.end_reason && whole(run.end_reason, line.end_reason),
    question: question && question.id === run.question?.id ? run.question : question,
    waiting_for,
    ended_at,
  };
}

// What a transition of a run says: the one field of its RunEvent that is set.
export function details(transition) {
  return Object.values(transition.run ?? {})[0] ?? {};
}

// Whether a run is one of those that a filter without words admits.
export function belongs({ attention, labels, session }, run) {
  if (attention.length && !attention.includes(word(run.attention))) return false;
  if (session && run.session_id !== session) return false;
  return Object.entries(labels).every(([key, value]) => run.labels[key] === value);
}
