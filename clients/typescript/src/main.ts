// pointsman-agent: node dist/src/main.js agent|conform [--server ADDRESS] [--project NAME] [--scenario FILE] [--tokens DIR]
// It shows what `pointsman token --env` prints; --tokens has a file ROLE.token for every role of the scenario.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Capability } from "../gen/pointsman/api/orchestrator/v1/assignment_pb.js";
import { Agent } from "./agent.js";
import { Client, credentialsFromEnvironment } from "./client.js";
import { conform, type Scenario } from "./conform.js";
import { exampleWork } from "./work.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: "string", default: process.env.POINTSMAN_SERVER ?? "127.0.0.1:7460" },
    project: { type: "string", default: "local" },
    name: { type: "string", default: "typescript-coder" },
    scenario: { type: "string", default: "../scenario.json" },
    tokens: { type: "string", default: "" },
  },
});

const connectAs = (role: string): Client => {
  const shown = credentialsFromEnvironment();
  const token = values.tokens ? join(values.tokens, `${role}.token`) : shown.token;
  return Client.connect(values.server, values.project, { ...shown, token });
};

if (positionals[0] === "conform") {
  const scenario = JSON.parse(readFileSync(values.scenario, "utf8")) as Scenario;
  console.log(JSON.stringify(await conform(connectAs, scenario)));
  process.exit(0); // polls that wait for work would keep the process
} else if (positionals[0] === "agent") {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());
  await new Agent(connectAs("coder"), values.name, [Capability.CODE], exampleWork).run(stop.signal);
} else {
  console.error("usage: main.js agent|conform [--server ADDRESS] [--project NAME] [--scenario FILE]");
  process.exit(2);
}
