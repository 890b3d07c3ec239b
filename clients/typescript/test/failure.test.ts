import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { codeName, type Scenario } from "../src/conform.js";
import { adviceFor } from "../src/failure.js";

const scenario = JSON.parse(readFileSync("../scenario.json", "utf8")) as Scenario;
const codes = new Map(
  Object.values(Code).filter((code): code is Code => typeof code === "number").map((code) => [codeName(code), code]),
);

test("every refusal of the scenario leads to its advice", () => {
  assert.ok(scenario.advice.length > 0);
  for (const { code, reason, advice } of scenario.advice) {
    assert.equal(adviceFor(codes.get(code)!, reason), advice, `${code} ${reason}`);
  }
});
