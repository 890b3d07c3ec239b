// pointsman-agent: node dist/src/main.js agent|conform [--server ADDRESS] [--project NAME] [--scenario FILE]
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Capability } from "../gen/pointsman/api/orchestrator/v1/assignment_pb.js";
import { Agent } from "./agent.js";
import { Client } from "./client.js";
import { conform, type Scenario } from "./conform.js";
import { exampleWork } from "./work.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: "string", default: "127.0.0.1:7460" },
    project: { type: "string", default: "local" },
    name: { type: "string", default: "typescript-coder" },
    scenario: { type: "string", default: "../scenario.json" },
  },
});
const client = Client.connect(values.server, values.project);

if (positionals[0] === "conform") {
  const scenario = JSON.parse(readFileSync(values.scenario, "utf8")) as Scenario;
  console.log(JSON.stringify(await conform(client, scenario)));
  process.exit(0); // polls that wait for work would keep the process
} else if (positionals[0] === "agent") {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());
  await new Agent(client, values.name, [Capability.CODE], exampleWork).run(stop.signal);
} else {
  console.error("usage: main.js agent|conform [--server ADDRESS] [--project NAME] [--scenario FILE]");
  process.exit(2);
}
