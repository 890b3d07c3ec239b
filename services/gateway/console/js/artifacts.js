// @ts-check
// What was handed over: plans, research, designs, and stored bodies by their digest.

import { download } from "./artifact.js";
import { h, nothing, toast } from "./dom.js";
import { clock, details, shortId } from "./words.js";

const TITLES = {
  planned: "Plan",
  epic_resumed: "Plan (resumed)",
  researched: "Research",
  designed: "Design",
  work_handed_in: "Work",
  wave_verified: "Verification",
};
const SHOWN_BYTES = 200000;

export function artifactsView(transitions) {
  const rows = [];
  for (const one of transitions) {
    if (!TITLES[one.event]) continue;
    const data = details(one);
    const body = data.document ?? data.plan?.document ?? data.work?.document ?? (data.tasks && { tasks: data.tasks });
    if (body)
      rows.push({
        seq: one.seq,
        at: one.at,
        title: TITLES[one.event],
        about: data.slot ?? data.task_id ?? "",
        body,
      });
  }
  if (rows.length === 0) return [nothing("Nothing has been handed over yet.")];
  const [latest, earlier] = split(rows.reverse());
  if (earlier.length === 0) return latest.map(row);
  const more = h("details", { class: "earlier" }, h("summary", {}, `${earlier.length} earlier`), earlier.map(row));
  return [...latest.map(row), more];
}

// Newest first: the latest of each kind, and those that it took the place of.
function split(rows) {
  const seen = new Set();
  const isLatest = (one) => !seen.has(`${one.title} ${one.about}`) && seen.add(`${one.title} ${one.about}`);
  const latest = rows.filter(isLatest);
  return [latest, rows.filter((one) => !latest.includes(one))];
}

function row({ seq, at, title, about, body }) {
  const stored = references(body);
  return h(
    "details",
    { class: "artifact", "data-seq": seq },
    h("summary", {}, h("strong", {}, title), ` ${about} `, h("span", { class: "dim" }, `#${seq}, ${clock(at)}`)),
    texts(body).map(([name, text]) => [h("h4", {}, name), h("pre", { tabindex: "0" }, text)]),
    stored.map((one) =>
      h(
        "p",
        {},
        h("code", {}, shortId(one.sha256)),
        ` ${one.size_bytes ?? "?"} bytes, ${one.media_type ?? ""} `,
        h("button", { type: "button", class: "quiet", onclick: () => save(one) }, "download"),
      ),
    ),
    h("details", {}, h("summary", {}, "All of it"), h("pre", {}, JSON.stringify(body, null, 1).slice(0, SHOWN_BYTES))),
  );
}

// Documents are `{text}` or `{artifact}`; the texts are what people want to read.
function texts(body, name = "") {
  if (body === null || typeof body !== "object") return [];
  if (typeof body.text === "string" && body.text) return [[name, body.text.slice(0, SHOWN_BYTES)]];
  return Object.entries(body).flatMap(([key, item]) => texts(item, key));
}

function references(body) {
  if (body === null || typeof body !== "object") return [];
  if (typeof body.sha256 === "string" && body.sha256) return [body];
  return Object.values(body).flatMap(references);
}

function save(artifact) {
  download(artifact).catch((error) => toast(error.message, "bad"));
}
