import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.addEventListener ??= () => {};
globalThis.location ??= { pathname: "/people", search: "" };
await import("../../../services/gateway/console/early.js");
const from = (name) => import(`../../../services/gateway/console/js/${name}.js`);
const { ATTENTION, PHASES, RUN_STATES, age, duration, phaseOf, questionWord, stateWord, tame } = await from("words");
const { belongs, withLine } = await from("words");
const { orderOf } = await from("again");
const { quoted, words } = await from("commandline");
const { orderFrom } = await from("newrun");
const { evidenceFor, provenBy } = await from("findings");

test("every state has a phase and a plain word", () => {
  assert.equal(Object.values(PHASES).flat().length, RUN_STATES.length);
  for (const state of RUN_STATES) {
    assert(PHASES[phaseOf(state)].includes(state), state);
    assert(!/[A-Z_]/.test(stateWord(`RUN_STATE_${state}`)), state);
  }
  assert.equal(phaseOf("RUN_STATE_SOMETHING_NEW"), "understand");
  assert.equal(Object.keys(ATTENTION).length, 6);
});

test("characters that steer are named, heaps of marks are cut, the rest stays", () => {
  assert.equal(tame("\u202etxt.exe\u2066"), "[U+202E]txt.exe[U+2066]");
  assert.equal(tame("e\u0301\u0301\u0301\u0301\u0301"), "e\u0301\u0301\u0301");
  for (const text of ["", "naïve", "👩\u200d💻", "שלום", "漢字"]) assert.equal(tame(text), text);
});

test("work that failed is not called a lack of confidence", () => {
  const kind = "QUESTION_KIND_LOW_CONFIDENCE";
  assert.equal(questionWord({ kind, text: "The work failed too often to be tried again by itself: x." }), "work failed");
  assert.equal(questionWord({ kind, text: "Confidence is 0.30" }), "what is meant?");
});

test("ages and durations are as people say them", () => {
  assert.deepEqual([0, 59, 61, 3600, 90000].map((seconds) => age(new Date(0).toISOString(), 1000 * seconds)), ["0 s", "59 s", "1 min", "1 h", "1 d"]);
  assert.equal(duration(90061000), "1 d 1 h");
});

const RUN = { id: "run_1", intent: "Fix the Parser", session_id: "s", labels: { team: "a" }, attention: "ATTENTION_STUCK" };
test("a run again has the words, proofs and limits of the old one", () => {
  const criteria = [
    { id: "V1", statement: "`make` succeeds", verify_command: ["make", "test it"], required: true },
    { id: "A1", statement: "no option is renamed", verify_command: [], required: true },
  ];
  const order = orderOf({ ...RUN, acceptance_criteria: criteria, template: "", budget: { assignments: 5 }, repository: { id: "r", base_commit: "c" } });
  assert.deepEqual(order.verify_commands, [{ arguments: ["make", "test it"] }]);
  assert.deepEqual(order.acceptance_criteria.map((one) => one.id), ["A1"]);
  const form = new Map([["message", "x"], ["repository", "r"], ["commit", "c"], ["verify", quoted(["make", "test it"])], ["holds", "no option is renamed\nand new"], ["assignments", "7"], ["cost", "1.5"]]);
  const sent = orderFrom(form, order);
  assert.deepEqual(sent.verify_commands, order.verify_commands);
  assert.equal(new Set(sent.acceptance_criteria.map((one) => one.id)).size, 2);
  assert.deepEqual([sent.budget.assignments, sent.budget.cost_micros, sent.repository.id], [7, "1500000", "r"]);
});

test("a command line and its arguments are one another's", () => {
  for (const list of [["make", "test"], ["a b", "c"], ['say "hi"', "back\\slash"], ["--x=1"]]) assert.deepEqual(words(quoted(list)), list);
  assert.deepEqual(words("python -c 'print(1)'"), ["python", "-c", "print(1)"]);
});

test("only the verifier proves; what an agent shows is its word", () => {
  const evidence = [{ id: "E1", kind: "EVIDENCE_KIND_COMMAND", exit_code: 0 }];
  const attempt = { work: { claims: [{ id: "C", criterion_ids: ["V1"], evidence_ids: ["E1"] }], evidence }, finding: undefined };
  assert.equal(provenBy(attempt, "V1"), undefined);
  assert.deepEqual(evidenceFor(attempt, "V1"), ["exit 0"]);
  const found = (one) => provenBy({ ...attempt, finding: { criteria: [{ criterion_id: "V1", ...one }] } }, "V1");
  assert.equal(found({ passed: false }), false);
  assert.equal(found({ passed: true, evidence: { exit_code: 0 } }), true);
  assert.equal(found({ passed: true, evidence: { exit_code: 1 } }), undefined, "a failure as on the base proves nothing");
});

test("a line of the stream changes what it says and leaves what it has no room for", () => {
  const question = { id: "q1", text: "Is it as asked? ".repeat(40) };
  const run = { seq: "7", intent: "fix ".repeat(100), tasks: [{ task_id: "T1" }], end_reason: "", question, ended_at: "x" };
  const line = { seq: "9", intent: run.intent.slice(0, 300), tasks: [], end_reason: "", attention: "ATTENTION_NEEDS_YOU" };
  const cut = { id: "q1", text: question.text.slice(0, 300) };
  assert.deepEqual(withLine(run, { ...line, question: cut }), {
    ...run,
    seq: "9",
    attention: "ATTENTION_NEEDS_YOU",
    waiting_for: undefined,
    ended_at: undefined,
  });
  assert.equal(withLine(run, line).question, undefined);
  assert.equal(withLine(run, { ...line, question: { id: "q2", text: "?" } }).question.id, "q2");
  assert.equal(withLine(run, { ...line, intent: "something else" }).intent, "something else");
  assert.equal(withLine({ ...run, end_reason: "done" }, line).end_reason, "");
});

test("a work beside others is worth its grade only where it was accepted", async () => {
  const { contenderWorth } = await from("contenders");
  const proof = { grade: "GRADE_PROVEN" };
  assert.equal(contenderWorth({ finding: { accepted: true, proof } }), "PROVEN");
  assert.equal(contenderWorth({ finding: { accepted: true } }), "passed");
  assert.equal(contenderWorth({ finding: { accepted: false, proof } }), "refused");
  assert.equal(contenderWorth({}), "not proven");
});

test("a line belongs into a list by what it asks, its session and its labels", () => {
  const run = { attention: "ATTENTION_STUCK", session_id: "s1", labels: { team: "a" } };
  const all = { attention: [], labels: {}, session: "" };
  assert.ok(belongs(all, run));
  assert.ok(belongs({ attention: ["STUCK"], labels: { team: "a" }, session: "s1" }, run));
  for (const other of [{ attention: ["DONE"] }, { labels: { team: "b" } }, { session: "s2" }])
    assert.ok(!belongs({ ...all, ...other }, run));
});
