// @ts-check
// The review of a task: what must hold, what its agent says, what we ran ourselves, and the change itself.

import { askAnswer } from "./actions.js";
import { textOf } from "./artifact.js";
import { claimsView } from "./claims.js";
import { contendersView } from "./contenders.js";
import { comparedView, diffView } from "./diff.js";
import { ago, claimed, h, nothing, replace, said } from "./dom.js";
import {
  commandsView,
  evidenceFor,
  filesView,
  otherFiles,
  oursChip,
  provenBy,
  statusChip,
  verdict,
  wantedView,
} from "./findings.js";
import { comparePatches, isTest, parsePatch } from "./patch.js";
import { isAboutWork } from "./question.js";
import { word } from "./words.js";

export class ReviewView {
  run;
  attempts;
  rejecting;

  constructor() {
    this.notes = new Map();
    this.refused = new Set();
    this.task = "";
    this.compared = "";
    this.tasks = h("nav", { class: "tabs", "aria-label": "Tasks with work" });
    this.head = h("div", { class: "review-head" });
    this.criteria = h("div", { class: "criteria-pane" });
    this.change = h("div", { class: "change", id: "diff" });
    this.claims = h("div", { id: "claims-list" });
    this.element = h(
      "div",
      { class: "review" },
      this.tasks,
      this.head,
      h("div", { class: "panes" }, this.criteria, this.change),
      h(
        "details",
        { class: "all-claims", id: "claims" },
        h("summary", {}, "Every attempt, claim and judgement"),
        this.claims,
      ),
    );
  }

  draw(run, attempts) {
    Object.assign(this, { run, attempts });
    const byTask = Map.groupBy ? Map.groupBy(attempts, (one) => one.task_id) : grouped(attempts);
    const asked = isAboutWork(run.question) ? run.question.subjects : [];
    if (!byTask.has(this.task))
      this.task = [...byTask.keys()].find((id) => asked.includes(id)) ?? [...byTask.keys()].at(-1) ?? "";
    this.drawTasks(byTask);
    replace(this.claims, claimsView(attempts));
    const mine = byTask.get(this.task) ?? [];
    if (mine.length === 0) {
      replace(
        this.head,
        nothing("No work has been handed in yet. ", h("a", { href: "#output" }, "What agents print"), " comes first."),
      );
      replace(this.criteria, wantedView(run));
      replace(this.change);
      return;
    }
    const looked = mine.find((one) => String(one.attempt) === this.compared) ?? mine.at(-1);
    this.drawHead(looked, mine);
    replace(this.criteria, this.criteriaView(looked));
    this.drawChange(mine);
  }

  drawTasks(byTask) {
    this.tasks.hidden = byTask.size < 2;
    replace(
      this.tasks,
      [...byTask].map(([id, mine]) =>
        h(
          "button",
          { type: "button", "aria-pressed": String(id === this.task), onclick: () => this.choose(id) },
          `${id} `,
          statusChip(mine.at(-1)),
        ),
      ),
    );
  }

  choose(id) {
    this.task = id;
    this.compared = "";
    this.draw(this.run, this.attempts);
  }

  get isAsked() {
    return this.run?.question && word(this.run.question.kind) === "ACCEPTANCE";
  }

  drawHead(latest, mine) {
    const proven = latest.acceptance_criteria.filter((one) => provenBy(latest, one.id) === true);
    const open = latest.acceptance_criteria
      .filter((one) => provenBy(latest, one.id) === undefined)
      .map((one) => one.id);
    const tests = (latest.work?.changed_files ?? []).filter((one) => isTest(one.path)).length;
    const other = otherFiles(latest);
    const risks = [
      tests ? `${tests} ${tests === 1 ? "test" : "tests"} changed` : "",
      ...(latest.finding?.proof?.risks ?? []),
      other.length ? `the verifier saw other files than were handed in: ${other.slice(0, 3).join(", ")}` : "",
    ].filter(Boolean);
    replace(
      this.head,
      h(
        "div",
        { class: "bar" },
        h(
          "h3",
          {},
          `${latest.task_id} `,
          said(latest.name),
          h(
            "span",
            { class: "dim" },
            ` · attempt ${latest.attempt}/${mine.length} · `,
            said(latest.author || "nobody yet"),
            " · ",
            ago(latest.started_at),
            " ago",
          ),
        ),
        this.isAsked ? h("div", { class: "actions" }, this.rejectButton(), this.acceptButton()) : statusChip(latest),
      ),
      h(
        "p",
        { id: "review-summary" },
        h("strong", {}, `${proven.length} of ${latest.acceptance_criteria.length} proven`),
        open.length ? [" · ", open.join(", "), open.length === 1 ? " needs a word" : " need a word"] : null,
        risks.length ? [" · risks: ", said(risks.join("; "))] : null,
      ),
      verdict(latest),
      contendersView(latest),
    );
  }

  acceptButton() {
    return h("button", { type: "button", class: "primary", id: "accept", onclick: () => this.accept() }, "Accept");
  }

  rejectButton() {
    this.rejecting = h(
      "button",
      { type: "button", class: "danger", id: "reject", onclick: () => this.reject() },
      this.rejectTitle(),
    );
    return this.rejecting;
  }

  rejectTitle() {
    const count = this.notes.size + this.refused.size;
    return count ? `Reject with ${count} ${count === 1 ? "note" : "notes"}…` : "Reject…";
  }

  accept() {
    if (this.isAsked) askAnswer(this.run, "ANSWER_KIND_ACCEPT", { task_id: this.task });
  }

  // Notes on lines and criteria that somebody says no to become the reason.
  reject() {
    if (!this.isAsked) return;
    const notes = [
      ...[...this.refused].map((id) => `${id}: not as asked`),
      ...[...this.notes].map(([at, text]) => `${at}: ${text}`),
    ];
    askAnswer(this.run, "ANSWER_KIND_REJECT", { task_id: this.task, text: notes.join("\n") });
  }

  criteriaView(attempt) {
    const known = attempt.acceptance_criteria;
    return [
      h("h3", {}, "Criteria"),
      known.length
        ? h(
            "ul",
            { class: "criteria" },
            known.map((one) => this.criterion(one, attempt)),
          )
        : nothing("The plan has no criteria."),
      commandsView(attempt.finding?.proof),
    ];
  }

  criterion(wanted, attempt) {
    const holds = provenBy(attempt, wanted.id);
    const ours = attempt.finding?.criteria.find((one) => one.criterion_id === wanted.id);
    const theirs = evidenceFor(attempt, wanted.id);
    const mark =
      holds === undefined
        ? h("span", { class: "mark open" }, "?")
        : h("span", { class: `mark ${holds ? "held" : "broken"}` }, holds ? "✔" : "✘");
    const needsWord = holds === undefined && this.isAsked;
    const no = h(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-pressed": String(this.refused.has(wanted.id)),
        onclick: () => this.refuse(wanted.id),
      },
      "no",
    );
    return h(
      "li",
      { "data-criterion": wanted.id, id: `criterion-${wanted.id}` },
      mark,
      h(
        "div",
        {},
        h("strong", {}, `${wanted.id} `),
        said(wanted.verify_command.length ? wanted.verify_command.join(" ") : wanted.statement),
        wanted.required ? null : h("span", { class: "dim" }, " (wanted, not required)"),
        h(
          "p",
          { class: "dim" },
          theirs.length ? theirs.map((text) => [claimed(`agent says ${text}`), " "]) : "the agent shows nothing for it",
          ours ? oursChip(ours) : wanted.verify_command.length ? " not run by us yet" : null,
        ),
        ours?.detail && !ours.passed ? h("pre", { tabindex: "0" }, ours.detail) : null,
        needsWord
          ? h(
              "p",
              { class: "actions" },
              h(
                "button",
                {
                  type: "button",
                  class: "quiet",
                  "aria-pressed": "false",
                  onclick: (event) => this.agree(event, wanted.id),
                },
                "ok",
              ),
              no,
            )
          : null,
      ),
    );
  }

  agree(event, id) {
    this.refused.delete(id);
    event.target.setAttribute("aria-pressed", "true");
    event.target.nextElementSibling?.setAttribute("aria-pressed", "false");
    this.noted();
  }

  refuse(id) {
    if (this.refused.has(id)) this.refused.delete(id);
    else this.refused.add(id);
    this.noted();
    const button = this.criteria.querySelector(`[data-criterion="${CSS.escape(id)}"] button:last-child`);
    button?.setAttribute("aria-pressed", String(this.refused.has(id)));
  }

  noted() {
    if (this.rejecting) this.rejecting.textContent = this.rejectTitle();
  }

  drawChange(mine) {
    const withDiff = mine.filter((one) => one.work?.diff?.sha256);
    const title = (text) => h("div", { class: "bar" }, h("h3", {}, text), this.compareTabs(withDiff));
    if (withDiff.length === 0) {
      replace(this.change, title("Change"), filesView(mine.at(-1)));
      return;
    }
    const holder = h("div", {}, nothing("loading the diff"));
    replace(
      this.change,
      title("Change"),
      h(
        "p",
        { class: "dim" },
        "As the author's worker handed it in; changed tests first. Click a line number to leave a note.",
      ),
      holder,
    );
    this.loadChange(withDiff, holder).catch((error) => replace(holder, nothing(error.message)));
  }

  async loadChange(withDiff, holder) {
    const [first, second] = this.compared.split(">").map(Number);
    const of = (number) => withDiff.find((one) => one.attempt === number) ?? withDiff.at(-1);
    if (second) {
      const [before, after] = await Promise.all([first, second].map((number) => textOf(of(number).work.diff.sha256)));
      replace(holder, comparedView(comparePatches(parsePatch(before), parsePatch(after))));
      return;
    }
    const text = await textOf((first ? of(first) : withDiff.at(-1)).work.diff.sha256);
    replace(
      holder,
      diffView(text, this.notes, () => this.noted()),
    );
    scrollToPlace(holder);
  }

  // base to each attempt, and each attempt to the one after it.
  compareTabs(withDiff) {
    const choices = withDiff.flatMap((one, place) => [
      [String(one.attempt), `attempt ${one.attempt}`],
      ...(place
        ? [[`${withDiff[place - 1].attempt}>${one.attempt}`, `${withDiff[place - 1].attempt} → ${one.attempt}`]]
        : []),
    ]);
    if (choices.length < 2) return h("span", { class: "dim" }, "against its base");
    const now = this.compared || String(withDiff.at(-1).attempt);
    const choose = (value) => {
      this.compared = value;
      this.draw(this.run, this.attempts);
    };
    return h(
      "div",
      { class: "tabs", role: "group", "aria-label": "Compare with the base" },
      choices.map(([value, text]) =>
        h("button", { type: "button", "aria-pressed": String(value === now), onclick: () => choose(value) }, text),
      ),
    );
  }
}

function scrollToPlace(holder) {
  const place = location.hash.length > 1 && holder.querySelector(`#${CSS.escape(location.hash.slice(1))}`);
  if (place) {
    place.scrollIntoView({ block: "center" });
    place.classList.add("target");
  }
}

function grouped(attempts) {
  const found = new Map();
  for (const one of attempts) found.set(one.task_id, [...(found.get(one.task_id) ?? []), one]);
  return found;
}
