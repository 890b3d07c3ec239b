// @ts-check
// What the component page shows: runs, plans, agents, entries and schedules in every state, made up.

export const NOW = () => new Date(Date.now() - 61000).toISOString();

const COMMAND = { id: "V1", statement: "`make check` succeeds", verify_command: ["make", "check"], required: true };
const SENTENCE = { id: "A1", statement: "no option is renamed", verify_command: [], required: true };

export const PLAN = {
  tasks: [
    {
      id: "T1",
      name: "Trim the fields",
      size: "S",
      depends: [],
      files: ["src/parser.py"],
      actions: ["trim", "test"],
      acceptance_criteria: [COMMAND, SENTENCE],
      tests_may_change: true,
      quality_gate: false,
    },
    {
      id: "T2",
      name: "Say so in the docs",
      size: "",
      depends: ["T1"],
      files: [],
      actions: [],
      acceptance_criteria: [],
      tests_may_change: false,
      quality_gate: true,
    },
  ],
};

const DIGEST = "0".repeat(64);

const SAID = { id: "E1", kind: "EVIDENCE_KIND_COMMAND", command: ["make", "check"], exit_code: 0, path: "", url: "" };
const WORK = {
  claims: [{ id: "C1", statement: "it works", evidence_ids: ["E1"], criterion_ids: ["V1"] }],
  evidence: [{ ...SAID, excerpt: "ok", digest: DIGEST, tree_hash: "", captured_at: "" }],
  changed_files: [{ path: "src/parser.py", change: "FILE_CHANGE_MODIFIED" }],
};

function criterion(passed, code, detail = "") {
  return { criterion_id: "V1", passed, detail, evidence: { ...SAID, exit_code: code } };
}

function proof(grade, more = {}) {
  return { grade, reasons: [], questions: [], risks: [], commands: [], protected_changes: [], ...more };
}

function finding(accepted, criteria, proved) {
  const shown = { changed_files: [], isolation: "namespaces", ...proved };
  return { accepted, criteria, claims: [], conflicts: [], proof: shown };
}

function attempt(name, status, more = {}) {
  return {
    task_id: "T1",
    name,
    attempt: 1,
    acceptance_criteria: [COMMAND, SENTENCE],
    author: "vm-coder",
    judgements: [],
    setbacks: [],
    started_at: NOW(),
    status,
    work: WORK,
    contenders: [],
    ...more,
  };
}

// An attempt in each state; the last was chosen among three.
export function attempts() {
  const refused = finding(
    false,
    [criterion(false, 0, "tests fail with the base's files")],
    proof("GRADE_UNSPECIFIED", { reasons: ["tests fail with the base's files and only changed tests hide it"] }),
  );
  const proven = finding(true, [criterion(true, 0)], proof("GRADE_PROVEN"));
  const asks = finding(true, [criterion(true, 2)], proof("GRADE_UNBROKEN", { questions: ["one test was changed"] }));
  const contenders = [
    { number: 1, author: "vm-coder-1", work: WORK, finding: refused, chosen: false, reason: "V1 does not hold" },
    { number: 2, author: "vm-coder-2", work: WORK, finding: proven, chosen: true, reason: "" },
    { number: 3, author: "vm-coder-3", work: WORK, chosen: false, reason: "" },
  ];
  return [
    attempt("handed in, not proven yet", "running"),
    attempt("caught and refused", "rejected", { finding: refused }),
    attempt("held back by a question", "reviewing", { finding: asks }),
    attempt("accepted and proven", "accepted", { finding: proven }),
    attempt("chosen among three", "accepted", { finding: proven, contenders }),
  ];
}

export const AGENTS = [
  { id: "vm-coder", state: "AGENT_STATE_WORKING", capabilities: ["CAPABILITY_CODE"], repository_ids: ["r"] },
  {
    id: "vm-reviewer",
    state: "AGENT_STATE_IDLE",
    capabilities: ["CAPABILITY_REVIEW"],
    repository_ids: ["r"],
    account: "claude/team",
    paused_until: new Date(Date.now() + 3600000).toISOString(),
    pause_reason: "usage limit reached",
  },
];

const ENTRY = {
  terms: { target: "main", remote: "origin", priority: 0 },
  title: "Trim the fields",
  run_id: "run_1",
  work_run_id: "run_1",
  commit: "0123456789abcdef",
  links: [],
  rounds: 1,
  landed_commit: "",
  end_reason: "",
  waiting_for: "",
};

export function entries() {
  const found = { kind: "FINDING_KIND_CONFLICTED", text: "<<<<<<< ours", files: ["src/parser.py"], untrusted: false };
  const links = [{ run_id: "run_2", kind: "FINDING_KIND_CONFLICTED", outcome: "" }];
  const stack = { number: 1, layers: [{ title: "Trim the fields" }, { title: "Say so" }], on_branch: "" };
  const states = [
    { state: "QUEUED", waiting_for: "the integrator" },
    { state: "PROVING", waiting_for: "its proof" },
    { state: "LANDING" },
    { state: "PROPOSED", proposal: { url: `${location.origin}/pull/1` }, stack },
    { state: "WAITING", links, waiting_for: "run_2" },
    { state: "ASKED", finding: found, waiting_for: "a person" },
    { state: "LANDED", landed_commit: "fedcba9876543210" },
    { state: "REJECTED", end_reason: "not now" },
    { state: "CANCELLED", end_reason: "cancelled by hand" },
  ];
  return states.map((one, place) => ({
    ...ENTRY,
    ...one,
    id: `entry_${place}`,
    state: `ENTRY_STATE_${one.state}`,
    updated_at: NOW(),
  }));
}

export function schedules() {
  const start = (outcome, reason = "") => ({ nominal_at: NOW(), run_id: reason ? "" : "run_1", outcome, reason });
  const spec = { cron: "0 3 * * *", time_zone: "Europe/Berlin", missed: "MISSED_POLICY_ONE", catch_up: "86400s" };
  const made = {
    spec: { ...spec, overlap: "OVERLAP_POLICY_SKIP" },
    order: { message: "Update the dependencies, repair what breaks", repository: { branch: "main", base_commit: "" } },
    waiting: [],
    starts: [],
    reason: "",
    started: 0,
    missed: 0,
    overlapped: 0,
    refused: 0,
  };
  const starts = [
    start("COMPLETE"),
    start("FAILED"),
    start("", "no worker with the branch was there for a day"),
    start(""),
  ];
  const states = [
    { state: "ACTIVE", next_at: NOW(), starts, started: 3, missed: 2, overlapped: 1, refused: 1 },
    { state: "ACTIVE", next_at: NOW(), waiting: [NOW()] },
    { state: "PAUSED", reason: "release week" },
    { state: "DELETED", reason: "enough" },
  ];
  return states.map((one, place) => ({
    ...made,
    ...one,
    id: `schedule_${place}`,
    state: `SCHEDULE_STATE_${one.state}`,
  }));
}

// A run that worked a minute, waited an hour for a person, and works again.
export function life() {
  const at = (seconds) => new Date(Date.now() - 1000 * (3720 - seconds)).toISOString();
  const one = (seconds, event, from, to, data = {}) => ({
    at: at(seconds),
    event,
    from_state: from,
    to_state: to,
    run: { [event]: data },
  });
  const work = (id) => ({ assignment: { assignment_id: id, purpose: "STAGE", task_id: "T1", stage: "DEV" } });
  return [
    one(0, "submitted", "", "BOOT"),
    one(5, "handed_off", "BOOT", "CODER_EXEC"),
    one(6, "assigned", "CODER_EXEC", "CODER_EXEC", work("a")),
    one(40, "assignment_ended", "CODER_EXEC", "CODER_EXEC", { assignment_id: "a", end: "DONE", agent_id: "vm-coder" }),
    one(60, "asked", "CODER_EXEC", "REVIEW_ACCEPT"),
    one(3660, "answered", "REVIEW_ACCEPT", "CODER_EXEC"),
    one(3661, "assigned", "CODER_EXEC", "CODER_EXEC", work("b")),
  ];
}
