// @ts-check
// The body of an artifact, by its digest: as text, or as a file.

import { ARTIFACTS, headers } from "./api.js";
import { h } from "./dom.js";
import { events } from "./watch.js";

const kept = new Map();
const MOST_KEPT = 20;

async function bytesOf(sha256) {
  const answer = await fetch(`/api/v1/${ARTIFACTS}/Get?sha256=${encodeURIComponent(sha256)}`, { headers: headers() });
  const parts = [];
  for await (const event of events(answer.body)) {
    if (event.kind === "refusal") throw new Error("The artifact is not there any more");
    if (event.kind === "message" && event.data)
      parts.push(Uint8Array.from(atob(JSON.parse(event.data).chunk), (letter) => letter.charCodeAt(0)));
  }
  return parts;
}

// A text that never changes, since its name is its content.
export async function textOf(sha256) {
  if (!kept.has(sha256)) {
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
    kept.set(sha256, await new Blob(await bytesOf(sha256)).text());
  }
  return kept.get(sha256);
}

export async function download(artifact, suffix = "bin") {
  const parts = await bytesOf(artifact.sha256);
  const url = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
  h("a", { href: url, download: `${artifact.sha256.slice(0, 12)}.${suffix}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
