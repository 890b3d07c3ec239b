// @ts-check
// A plan as people read and write it: lines of words for what the contract keeps in fields, and back without loss.

import { quoted, words } from "./commandline.js";

const COMMAND = /^`(.*)`$/s;

// The latest plan in a journal; null before the first one.
export function planOf(transitions) {
  const made = transitions.findLast((one) => one.event === "planned" || one.event === "epic_resumed");
  return made?.run?.[made.event]?.plan?.document ?? null;
}

// What proves a task, as `pointsman plan` prints it: a command in backquotes, else the sentence.
export function proofLine(criterion) {
  return criterion.verify_command.length ? `\`${quoted(criterion.verify_command)}\`` : criterion.statement;
}

// A task as the lines of `pointsman plan show`.
export function taskLines(task) {
  const size = task.size ? ` (${task.size})` : "";
  const after = task.depends.length ? `, after ${task.depends.join(", ")}` : "";
  return [
    `${task.id}  ${task.name}${size}${after}`,
    ...(task.files.length ? [`files  ${task.files.join(", ")}`] : []),
    ...task.acceptance_criteria.map((one) => `proof  ${proofLine(one)}`),
    ...(task.tests_may_change ? ["may change tests"] : []),
    ...(task.quality_gate ? ["asks you when it is done"] : []),
  ];
}

export function lines(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

// A task with what somebody wrote in its fields; criteria that were left as they are stay what they are.
export function writtenTask(task, fields) {
  const known = new Map(task.acceptance_criteria.map((one) => [proofLine(one), one]));
  const wanted = lines(fields.proof);
  const taken = new Set(wanted.filter((line) => known.has(line)).map((line) => known.get(line).id));
  return {
    ...task,
    name: fields.name.trim(),
    size: fields.size,
    depends: fields.after.split(/[\s,]+/).filter(Boolean),
    files: lines(fields.files),
    actions: lines(fields.actions),
    acceptance_criteria: wanted.map((line) => known.get(line) ?? newCriterion(task.id, line, taken)),
    tests_may_change: fields.tests_may_change,
    quality_gate: fields.quality_gate,
  };
}

function newCriterion(taskId, line, taken) {
  let number = 1;
  while (taken.has(`${taskId}-C${number}`)) number += 1;
  const id = `${taskId}-C${number}`;
  taken.add(id);
  const command = COMMAND.exec(line)?.[1];
  return command
    ? { id, statement: `${line} succeeds`, verify_command: words(command), required: true, test_files: [] }
    : { id, statement: line, verify_command: [], required: true, test_files: [] };
}

export function newTask(plan) {
  let number = plan.tasks.length + 1;
  while (plan.tasks.some((one) => one.id === `T${number}`)) number += 1;
  const empty = { requirement: "", phase: "", blocked_by: [], actions: [], files: [], depends: [] };
  return {
    ...empty,
    id: `T${number}`,
    name: "",
    size: "",
    acceptance_criteria: [],
    tests_may_change: false,
    quality_gate: false,
  };
}

// Without a task; what waited for it waits for it no more.
export function withoutTask(plan, id) {
  const left = plan.tasks.filter((one) => one.id !== id);
  return { ...plan, tasks: left.map((one) => ({ ...one, depends: one.depends.filter((other) => other !== id) })) };
}
