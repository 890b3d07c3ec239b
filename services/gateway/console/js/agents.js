// @ts-check
// Who works on what, since when, and who was not heard of.

import { AGENTS } from "./api.js";
import { title } from "./counts.js";
import { ago, chip, h, keepCards, link, replace, said, section, table, titled } from "./dom.js";
import { Sweep } from "./sweep.js";
import { poll } from "./watch.js";
import { clock, money, plain, shortId, tone, word } from "./words.js";

const LOOK_AGAIN = 3000;
const AGENT_COLUMNS = ["Agent", "State", "Can do", "Works on, since when", "Repositories", "Spent", "Last heard of"];
const WORK_COLUMNS = ["Run", "For", "Needs", "Attempt", "Waits"];
const LIVE = ["ASSIGNMENT_STATE_OPEN", "ASSIGNMENT_STATE_LEASED"];

export async function show(main, { signal }) {
  title("Agents");
  const agents = h("tbody", {});
  const open = h("tbody", {});
  replace(
    main,
    h("h1", {}, "Agents"),
    section("known", "Who is there", table("agents", "Agents", AGENT_COLUMNS, agents)),
    section("waiting", "Work that waits for an agent", table("open-work", "Open work", WORK_COLUMNS, open)),
  );
  const known = new Sweep({ service: AGENTS, method: "ListAgents", items: "agents", key: idOf, size: 16 });
  const listed = { service: AGENTS, method: "ListAssignments", items: "assignments", request: { states: LIVE } };
  const work = new Sweep({ ...listed, key: idOf, size: 6 });
  const show = () => signal.aborted || draw(agents, open, known.list, work.list);
  let isFirst = true;
  await poll(LOOK_AGAIN, signal, async () => {
    await Promise.all([known, work].map((one) => (isFirst ? one.load() : one.look())));
    isFirst = false;
    show();
  });
}

function idOf(one) {
  return one.id;
}

function draw(agents, open, known, work) {
  const held = grouped(work.filter(isHeld));
  const order = { WORKING: 0, LOST: 2, IDLE: 1 };
  const sorted = known.sort(
    (one, other) => order[word(one.state)] - order[word(other.state)] || (one.id < other.id ? -1 : 1),
  );
  const rows = sorted.map((agent) => ({ agent, work: held.get(agent.id) ?? [] }));
  keepCards(
    agents,
    rows,
    version,
    (one) => titled(AGENT_COLUMNS, agentRow(one)),
    empty(7, "No agent has ever polled. Start one with: pointsman agent"),
  );
  for (const [place, { agent }] of rows.entries()) hear(agents.children[place], agent);
  const waiting = work.filter((one) => !isHeld(one));
  keepCards(
    open,
    waiting,
    JSON.stringify,
    (one) => titled(WORK_COLUMNS, openRow(one)),
    empty(5, "No work waits for an agent."),
  );
}

// Rows stay as they are while only the time of the last word changes: what has the focus keeps it.
function version({ agent, work }) {
  return JSON.stringify([{ ...agent, last_seen_at: "" }, work]);
}

function hear(row, agent) {
  replace(row.lastElementChild, agent.last_seen_at ? [ago(agent.last_seen_at), " ago"] : "never");
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

function agentRow({ agent, work }) {
  return h(
    "tr",
    { "data-agent": agent.id },
    h("th", { scope: "row" }, agent.id),
    h("td", {}, chip(plain(agent.state), tone(agent.state)), resting(agent)),
    h("td", {}, agent.capabilities.map(plain).join(", ")),
    h(
      "td",
      {},
      work.length
        ? work.map((one) => h("p", {}, about(one), h("span", { class: "dim" }, " for ", ago(one.created_at))))
        : h("span", { class: "dim" }, "nothing"),
    ),
    h(
      "td",
      {},
      agent.repository_ids.slice(0, 5).map((one) => h("code", { class: "subject" }, shortId(one))),
    ),
    h("td", {}, money(agent.usage?.cost_micros) || `${agent.usage?.assignments ?? 0} started`),
    h("td", { class: "dim" }),
  );
}

// The account of its model's provider rests because of a limit.
function resting({ account, paused_until: until, pause_reason: why }) {
  if (!until || Date.parse(until) < Date.now()) return null;
  return h(
    "p",
    { class: "dim" },
    chip("rests", "ask"),
    `${account} until ${clock(until)}`,
    why ? [": ", said(why)] : null,
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
    h("td", {}, ago(one.created_at)),
  );
}

function about(one) {
  return [[plain(one.purpose), one.task_id, one.stage].filter(Boolean).join(" "), " of ", runLink(one)];
}

function runLink(one) {
  return link(`/runs/${encodeURIComponent(one.run_id)}`, shortId(one.run_id));
}
