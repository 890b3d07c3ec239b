// A reporter for `node --test`: one JSON line per test. It runs in the process that starts the tests, not in theirs.
import { appendFileSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";

const TEXT_LENGTH = 1000;

function message(error) {
  const cause = error?.cause?.message ?? error?.message ?? "";
  return String(cause).slice(-TEXT_LENGTH);
}

function outcome(event) {
  if (event.data.skip !== undefined || event.data.todo !== undefined) return "skipped";
  return event.type === "test:pass" ? "passed" : "failed";
}

export default async function* report(events) {
  const path = join(process.env.POINTSMAN_REPORTS, `node-${process.pid}.jsonl`);
  const names = [];
  let count = 0;
  for await (const event of events) {
    const { data } = event;
    if (event.type === "test:start") {
      names.length = data.nesting;
      names[data.nesting] = data.name;
    }
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const file = data.file ? relative(process.cwd(), data.file) : "";
    const wholeFile = isAbsolute(data.name) && (data.file === undefined || data.file === data.name);
    const failedSuite = event.type === "test:fail" && data.details?.error?.failureType !== "subtestsFailed";
    if (wholeFile && event.type === "test:pass") continue;
    if (data.details?.type === "suite" && !failedSuite) continue;
    const id = wholeFile ? relative(process.cwd(), data.name) : [file, ...names.slice(0, data.nesting), data.name].join(" > ");
    const line = { id, outcome: wholeFile ? "error" : outcome(event), message: message(data.details?.error), file };
    line.seconds = (data.details?.duration_ms ?? 0) / 1000;
    appendFileSync(path, JSON.stringify(line) + "\n");
    count += 1;
  }
  appendFileSync(path, JSON.stringify({ finished: count }) + "\n");
  yield "";
}
