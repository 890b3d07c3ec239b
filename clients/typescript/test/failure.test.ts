import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ErrorReason } from "../gen/pointsman/api/common/v1/common_pb.js";
import { codeName, type Scenario } from "../src/conform.js";
import { adviceFor } from "../src/failure.js";

const scenario = JSON.parse(readFileSync("../scenario.json", "utf8")) as Scenario;
const codes = new Map(
  Object.values(Code).filter((code): code is Code => typeof code === "number").map((code) => [codeName(code), code]),
);

test("every refusal of the scenario leads to its advice", () => {
  for (const { code, reason, advice } of scenario.advice) {
    assert.equal(adviceFor(codes.get(code)!, reason), advice, `${code} ${reason}`);
  }
});

test("every reason of the contract has an advice", () => {
  const advised = new Set(scenario.advice.map(({ reason }) => reason));
  const reasons = Object.values(ErrorReason).filter((reason): reason is string => typeof reason === "string");
  assert.deepEqual(reasons.filter((reason) => reason !== "UNSPECIFIED" && !advised.has(reason)), []);
});
