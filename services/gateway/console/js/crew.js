// @ts-check
// Who would play which role of a new run: the agents that are present and have the repository, and what follows where
// nobody plays one; the words are those of the command line.

import { chip, h, said } from "./dom.js";
import { word } from "./words.js";

const ROLES = {
  planner: "PLAN",
  researcher: "RESEARCH",
  coder: "CODE",
  reviewer: "REVIEW",
  verifier: "VERIFY",
};
const WITHOUT = {
  planner: "the work is one task for one coder",
  researcher: "what the plan asks is answered by a survey of the repository",
  reviewer: "what no command proves is for you to accept",
};
const WAITS = "the run waits until one is there";
const START = {
  coder: "pointsman agent --role coder --agent claude --repo .",
  verifier: "pointsman agent --repo .",
};

// [{ role, agents }]: who is present for each role, with the repository where one is chosen.
export function crewOf(agents, repository) {
  const present = agents.filter((one) => word(one.state) !== "LOST");
  const able = present.filter((one) => !repository || one.repository_ids.includes(repository));
  return Object.entries(ROLES).map(([role, capability]) => ({
    role,
    agents: able.filter((one) => one.capabilities.map(word).includes(capability)),
  }));
}

export function crewView(crew) {
  return h(
    "dl",
    { class: "crew", id: "crew", "aria-label": "Who plays what" },
    crew.map(({ role, agents }) => [
      h("dt", {}, role),
      h("dd", { "data-role": role }, agents.length ? agents.slice(0, 6).map(player) : nobody(role)),
    ]),
  );
}

function player(agent) {
  const rests = agent.paused_until && Date.parse(agent.paused_until) > Date.now();
  return [said(agent.id), rests ? [" ", chip("rests", "ask")] : null, " "];
}

function nobody(role) {
  const command = START[role];
  return [
    chip("nobody", command ? "bad" : "dim"),
    ` ${WITHOUT[role] ?? WAITS}`,
    command ? [": ", h("code", {}, command)] : null,
  ];
}
