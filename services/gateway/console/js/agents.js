// Who works on what, since when, and who was not heard of.

import { AGENTS, all } from "./api.js";
import { chip, h, link, replace } from "./dom.js";
import { age, clock, plain, shortId, tone, word } from "./words.js";

const LOOK_AGAIN = 1500;
const LIVE = ["ASSIGNMENT_STATE_OPEN", "ASSIGNMENT_STATE_LEASED"];

export async function show(main, { signal }) {
  document.title = "Agents · Pointsman";
  const agents = h("tbody", {});
  const open = h("tbody", {});
  replace(
    main,
    h("h1", {}, "Agents"),
    table("agents", "Agents", ["Agent", "State", "Can do", "Works on", "Heard of"], agents),
    h("h2", {}, "Work that waits for an agent"),
    table("open-work", "Open work", ["Run", "For", "Needs", "Attempt", "Waits"], open),
  );
  const refresh = () => load(agents, open, signal).catch(() => {});
  await load(agents, open, signal);
  const timer = setInterval(() => document.hidden || refresh(), LOOK_AGAIN);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function table(id, label, titles, body) {
  const head = h(
    "thead",
    {},
    h(
      "tr",
      {},
      titles.map((title) => h("th", { scope: "col" }, title)),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", { id }, head, body),
  );
}

async function load(agents, open, signal) {
  const [known, work] = await Promise.all([
    all(AGENTS, "ListAgents", {}, "agents"),
    all(AGENTS, "ListAssignments", { states: LIVE }, "assignments"),
  ]);
  if (signal.aborted) return;
  const held = Map.groupBy ? Map.groupBy(work.filter(isHeld), (one) => one.agent_id) : grouped(work.filter(isHeld));
  const order = { WORKING: 0, LOST: 1, IDLE: 2 };
  const sorted = known.sort(
    (one, other) => order[word(one.state)] - order[word(other.state)] || (one.id < other.id ? -1 : 1),
  );
  replace(
    agents,
    sorted.length
      ? sorted.map((agent) => agentRow(agent, held.get(agent.id) ?? []))
      : empty(5, "No agent has ever polled. Start one with: pointsman agent"),
  );
  const waiting = work.filter((one) => !isHeld(one));
  replace(open, waiting.length ? waiting.map(openRow) : empty(5, "No work waits for an agent."));
}

function isHeld(assignment) {
  return word(assignment.state) === "LEASED";
}

function grouped(assignments) {
  const found = new Map();
  for (const one of assignments) found.set(one.agent_id, [...(found.get(one.agent_id) ?? []), one]);
  return found;
}

function empty(columns, text) {
  return h("tr", {}, h("td", { colspan: columns, class: "empty" }, text));
}

function agentRow(agent, work) {
  return h(
    "tr",
    { "data-agent": agent.id },
    h("th", { scope: "row" }, agent.id),
    h("td", {}, chip(plain(agent.state), tone(agent.state))),
    h("td", {}, agent.capabilities.map(plain).join(", ")),
    h(
      "td",
      {},
      work.length
        ? work.map((one) => h("p", {}, about(one), h("span", { class: "dim" }, ` for ${age(one.created_at)}`)))
        : "",
    ),
    h("td", { title: clock(agent.last_seen_at) }, agent.last_seen_at ? `${age(agent.last_seen_at)} ago` : ""),
  );
}

function openRow(one) {
  return h(
    "tr",
    { "data-assignment": one.id },
    h("th", { scope: "row" }, runLink(one)),
    h("td", {}, [plain(one.purpose), one.task_id, one.stage].filter(Boolean).join(" ")),
    h("td", {}, plain(one.capability), one.repository?.id ? ` with repository ${shortId(one.repository.id)}` : ""),
    h("td", {}, String(one.attempt)),
    h("td", {}, age(one.created_at)),
  );
}

function about(one) {
  return [[plain(one.purpose), one.task_id, one.stage].filter(Boolean).join(" "), " of ", runLink(one)];
}

function runLink(one) {
  return link(`/runs/${encodeURIComponent(one.run_id)}`, shortId(one.run_id));
}
