// @ts-check
// Try a text: which words decided, what follows from it; and how the decisions went over time.

import { call, change, ROUTER } from "./api.js";
import { title } from "./counts.js";
import { ago, chip, h, nothing, replace, section, table } from "./dom.js";
import { plain, word } from "./words.js";

const DAYS = 14;
const DAY = 86400000;

export async function show(main, { signal }) {
  title("Router");
  const text = h("textarea", {
    id: "router-text",
    rows: 4,
    maxlength: 65536,
    placeholder: "fix the failing test in tests/test_api.py and push it",
  });
  const result = h("div", { id: "decision", "aria-live": "polite" });
  const stats = h("div", { id: "stats" });
  const recent = h("div", { id: "recent" });
  const reload = () => Promise.all([drawStats(stats), drawRecent(recent)]);
  const form = h(
    "form",
    { class: "try" },
    h("label", { for: "router-text" }, "A message, as a user would write it"),
    text,
    h("button", { type: "submit", class: "primary" }, "Decide"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { decision } = await change(ROUTER, "Classify", { message: { text: text.value } });
      replace(result, decided(decision, text.value));
    } catch (error) {
      replace(result, h("p", { class: "problem", role: "alert" }, error.message));
    }
    if (!signal.aborted) await reload();
  });
  replace(
    main,
    h("h1", {}, "Router"),
    section("try", "Try a text", form, result),
    section("over-time", "Over time", stats),
    section("latest", "Latest decisions", recent),
  );
  await reload();
}

function decided(decision, text) {
  const facts = [
    ["Confidence", plain(decision.confidence)],
    ["Goes to", plain(decision.route)],
    [
      "Debate",
      `${plain(decision.debate)}${word(decision.debate_bypass) === "NONE" ? "" : `, bypassed: ${plain(decision.debate_bypass)}`}`,
    ],
    ["Stakes", plain(decision.stakes)],
    ["Rules", decision.rules.join(", ")],
    ["Rule set", decision.rule_set_version],
  ];
  const why = [
    ...decision.triggers.map((one) => chip(`${plain(one.kind)}: ${one.name}`, "busy")),
    ...decision.debate_reasons.map((one) => chip(`${plain(one.trigger)}`, "ask")),
  ];
  return [
    h(
      "p",
      { class: "verdict" },
      chip(word(decision.mode), word(decision.mode) === "ACTION" ? "busy" : "dim"),
      decision.fast_path ? [" ", chip("fast path", "good")] : null,
    ),
    h("p", { class: "spans", id: "spans" }, marked(text, decision)),
    why.length ? h("p", {}, "Decided by: ", why) : h("p", { class: "dim" }, "No word asks for action."),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
  ];
}

// Places are counted in code points, as the service counts them.
function marked(text, decision) {
  const letters = Array.from(text);
  const kinds = letters.map(() => "");
  const paint = (from, to, kind) => {
    for (let place = from; place < Math.min(to, letters.length); place += 1)
      kinds[place] = kinds[place] ? `${kinds[place]} ${kind}` : kind;
  };
  for (const one of decision.triggers) paint(one.start, one.end, "trigger");
  for (const one of decision.debate_reasons) paint(one.start, one.end, "reason");
  const parts = [];
  for (let start = 0, end = 0; start < letters.length; start = end) {
    while (end < letters.length && kinds[end] === kinds[start]) end += 1;
    const piece = letters.slice(start, end).join("");
    parts.push(kinds[start] ? h("mark", { class: kinds[start] }, piece) : piece);
  }
  return parts;
}

async function drawStats(holder) {
  const today = Math.floor(Date.now() / DAY) * DAY;
  const days = Array.from({ length: DAYS }, (_, back) => today - (DAYS - 1 - back) * DAY);
  const asked = days.map((day) =>
    call(ROUTER, "GetStats", {
      window: { start: new Date(day).toISOString(), end: new Date(day + DAY).toISOString() },
    }),
  );
  const [whole, ...each] = await Promise.all([call(ROUTER, "GetStats", {}), ...asked]);
  const percent = (rate) => `${Math.round(100 * rate)} %`;
  const facts = [
    ["Decisions", whole.decisions],
    ["Answer", percent(whole.answer_rate)],
    ["Action", percent(whole.action_rate)],
    ["Strong", percent(whole.strong_rate)],
    ["Overridden", percent(whole.override_rate)],
    ["Debates", whole.debates],
    ["Fast path", whole.fast_paths],
  ];
  const most = Math.max(1, ...each.map((one) => Number(one.decisions)));
  const bars = each.map((one, index) => bar(days[index], one, most));
  replace(
    holder,
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value)))),
    ),
    h("ol", { class: "bars", "aria-label": "Decisions of each day" }, bars),
  );
}

function bar(day, stats, most) {
  const action = h("span", { class: "action" });
  const answer = h("span", { class: "answer" });
  action.style.height = `${(100 * Number(stats.actions)) / most}%`;
  answer.style.height = `${(100 * Number(stats.answers)) / most}%`;
  const name = new Date(day).toISOString().slice(5, 10);
  return h(
    "li",
    { title: `${name}: ${stats.actions} action, ${stats.answers} answer` },
    h("span", { class: "column" }, answer, action),
    h("span", { class: "day" }, name),
    h("span", { class: "hidden" }, `: ${stats.actions} action, ${stats.answers} answer`),
  );
}

async function drawRecent(holder) {
  const { decisions } = await call(ROUTER, "ListDecisions", { page: { page_size: 50 } });
  if (decisions.length === 0) return replace(holder, nothing("Nothing has been decided yet."));
  const rows = decisions.map((one) =>
    h(
      "tr",
      {},
      h("td", {}, chip(word(one.mode), word(one.mode) === "ACTION" ? "busy" : "dim")),
      h("td", {}, plain(one.confidence)),
      h("td", { class: "excerpt" }, one.text_excerpt),
      h("td", { class: "dim" }, ago(one.decided_at), " ago"),
    ),
  );
  const titles = ["Mode", "Confidence", "Text", "When"];
  return replace(holder, table("decisions", "Latest decisions", titles, h("tbody", {}, rows)));
}
