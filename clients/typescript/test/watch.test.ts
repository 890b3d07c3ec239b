import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { OrchestratorService } from "../gen/pointsman/api/orchestrator/v1/orchestrator_pb.js";
import { Client } from "../src/client.js";

test("a broken watch goes on without gap or repeat", async () => {
  const asked: bigint[] = [];
  const transport = createRouterTransport(({ rpc }) => {
    rpc(OrchestratorService.method.watchRun, async function* ({ afterSeq }) {
      asked.push(afterSeq);
      for (let seq = afterSeq + 1n; seq <= 5n; seq++) {
        if (seq > afterSeq + 2n) throw new ConnectError("the service is stopping", Code.Unavailable);
        yield { transition: { seq } };
      }
    });
  });
  const seqs: bigint[] = [];
  for await (const { seq } of new Client(transport).watch("run")) seqs.push(seq);
  assert.deepEqual(seqs, [1n, 2n, 3n, 4n, 5n]);
  assert.deepEqual(asked, [0n, 2n, 4n]);
});
