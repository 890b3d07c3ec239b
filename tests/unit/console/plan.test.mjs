import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.addEventListener ??= () => {};
const from = (name) => import(`../../../services/gateway/console/js/${name}.js`);
const { lines, newTask, planOf, taskLines, withoutTask, writtenTask } = await from("plandoc");
const { scale, waits } = await from("trace");

const CRITERION = { id: "V1", statement: "`make check` succeeds", verify_command: ["make", "check"], required: true, test_files: ["t"] };
const WORD = { id: "A1", statement: "no option is renamed", verify_command: [], required: false, test_files: [] };
const TASK = {
  id: "T2", name: "Trim", actions: ["look", "cut"], files: ["src/*.py"], requirement: "r", depends: ["T1"], blocked_by: ["api"],
  phase: "p", quality_gate: true, acceptance_criteria: [CRITERION, WORD], tests_may_change: false, size: "S",
};
const FIELDS = { name: "Trim", size: "S", after: "T1", files: "src/*.py", actions: "look\ncut", proof: "`make check`\nno option is renamed", tests_may_change: false, quality_gate: true };

test("a task that nobody changed is written back as it was", () => {
  assert.deepEqual(writtenTask(TASK, FIELDS), TASK);
});

test("what somebody wrote is in the task, and the rest stays", () => {
  const now = writtenTask(TASK, { ...FIELDS, name: " Cut ", after: "T1, T0 ", files: "a\n\n b ", proof: "no option is renamed\n`pytest -k \"a b\"`\nfast", quality_gate: false });
  assert.deepEqual([now.name, now.depends, now.files, now.quality_gate, now.blocked_by], ["Cut", ["T1", "T0"], ["a", "b"], false, ["api"]]);
  assert.deepEqual(now.acceptance_criteria.map((one) => one.id), ["A1", "T2-C1", "T2-C2"]);
  assert.deepEqual(now.acceptance_criteria[1].verify_command, ["pytest", "-k", "a b"]);
  assert.equal(now.acceptance_criteria[0].required, false);
});

test("a task is read in the words of `pointsman plan show`", () => {
  assert.deepEqual(taskLines(TASK), ["T2  Trim (S), after T1", "files  src/*.py", "proof  `make check`", "proof  no option is renamed", "asks you when it is done"]);
});

test("a new task has an id of its own, and nothing waits for one that is gone", () => {
  const plan = { tasks: [{ ...TASK, id: "T1", depends: [] }, TASK] };
  assert.equal(newTask(plan).id, "T3");
  assert.equal(newTask({ tasks: [TASK] }).id, "T3");
  assert.deepEqual(withoutTask(plan, "T1").tasks.map((one) => [one.id, one.depends]), [["T2", []]]);
  assert.deepEqual(lines("\n a \n"), ["a"]);
});

test("the latest plan of the journal is the plan", () => {
  const made = (name) => ({ event: "planned", run: { planned: { plan: { document: { tasks: [name] } } } } });
  assert.equal(planOf([{ event: "asked", run: {} }]), null);
  assert.deepEqual(planOf([made("a"), made("b"), { event: "asked", run: {} }]), { tasks: ["b"] });
});

const at = (seconds) => new Date(1000 * seconds).toISOString();
const event = (seconds, name, data = {}) => ({ at: at(seconds), event: name, run: { [name]: data } });
const begun = (seconds, id) => event(seconds, "assigned", { assignment: { assignment_id: id } });
const ended = (seconds, id) => event(seconds, "assignment_ended", { assignment_id: id });

test("times in which a person was asked or nobody had work are waits, times of work are none", () => {
  const life = [begun(0, "a"), ended(100, "a"), event(101, "asked"), event(3700, "labelled"), event(7200, "answered"), begun(7201, "b")];
  assert.deepEqual(waits(life, 9e6).map((one) => [one.start / 1000, one.end / 1000]), [[101, 7200]]);
  assert.deepEqual(waits(life, 9e6, true), [{ start: 101000, end: 7200000 }, { start: 7201000, end: 9e6 }], "nobody is there for what is open");
  assert.deepEqual(waits([begun(0, "a"), ended(1, "a"), event(2, "pass")], 5000), [], "short ones are not worth it");
});

test("a fold is a narrow strip, and everything else keeps its share", () => {
  const place = scale(0, 3600e3 + 100, [{ start: 50, end: 50 + 3600e3 }]);
  assert.equal(place(0), 0);
  assert.equal(place(3600e3 + 100), 1);
  const strip = place(50 + 3600e3) - place(50);
  assert(strip > 0.03 && strip < 0.05, String(strip));
  assert(Math.abs(place(50) - (1 - strip) / 2) < 1e-9);
  assert.equal(scale(0, 100, [])(25), 0.25);
  assert(scale(0, 100, [{ start: 0, end: 100 }])(50) > 0.4, "nothing but waiting");
});
