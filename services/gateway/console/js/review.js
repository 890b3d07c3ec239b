// The review of a task: what must hold, what its agent says, what we ran ourselves, and the change itself.

import { answerRule, askAnswer, choices } from "./actions.js";
import { textOf } from "./artifact.js";
import { claimsView } from "./claims.js";
import { comparedView, diffView } from "./diff.js";
import { ago, chip, claimed, h, nothing, replace, said } from "./dom.js";
import { comparePatches, isTest, parsePatch } from "./patch.js";
import { gradeName, plain, questionWord, tone, word } from "./words.js";

const ABOUT_WORK = new Set(["ACCEPTANCE", "PIPELINE_ESCALATED"]);

export class ReviewView {
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
      h("details", { class: "all-claims", id: "claims" }, h("summary", {}, "Every attempt, claim and judgement"), this.claims),
    );
  }

  draw(run, attempts) {
    Object.assign(this, { run, attempts });
    const byTask = Map.groupBy ? Map.groupBy(attempts, (one) => one.task_id) : grouped(attempts);
    const asked = run.question && ABOUT_WORK.has(word(run.question.kind)) ? run.question.subjects : [];
    if (!byTask.has(this.task)) this.task = [...byTask.keys()].find((id) => asked.includes(id)) ?? [...byTask.keys()].at(-1) ?? "";
    this.drawTasks(byTask);
    replace(this.claims, claimsView(attempts));
    const mine = byTask.get(this.task) ?? [];
    if (mine.length === 0) {
      replace(this.head, nothing("No work has been handed in yet. ", h("a", { href: "#output" }, "What agents print"), " comes first."));
      replace(this.criteria, wantedView(run));
      replace(this.change);
      return;
    }
    const latest = mine.at(-1);
    this.drawHead(latest, mine);
    replace(this.criteria, this.criteriaView(latest));
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
    const open = latest.acceptance_criteria.filter((one) => provenBy(latest, one.id) === undefined).map((one) => one.id);
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
        h("h3", {}, `${latest.task_id} `, said(latest.name), h("span", { class: "dim" }, ` · attempt ${latest.attempt}/${mine.length} · `, said(latest.author || "nobody yet"), " · ", ago(latest.started_at), " ago")),
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
    );
  }

  acceptButton() {
    return h("button", { type: "button", class: "primary", id: "accept", onclick: () => this.accept() }, "Accept");
  }

  rejectButton() {
    this.rejecting = h("button", { type: "button", class: "danger", id: "reject", onclick: () => this.reject() }, this.rejectTitle());
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
    const notes = [...[...this.refused].map((id) => `${id}: not as asked`), ...[...this.notes].map(([at, text]) => `${at}: ${text}`)];
    askAnswer(this.run, "ANSWER_KIND_REJECT", { task_id: this.task, text: notes.join("\n") });
  }

  criteriaView(attempt) {
    const known = attempt.acceptance_criteria;
    return [
      h("h3", {}, "Criteria"),
      known.length ? h("ul", { class: "criteria" }, known.map((one) => this.criterion(one, attempt))) : nothing("The plan has no criteria."),
      commandsView(attempt.finding?.proof),
    ];
  }

  criterion(wanted, attempt) {
    const holds = provenBy(attempt, wanted.id);
    const ours = attempt.finding?.criteria.find((one) => one.criterion_id === wanted.id);
    const theirs = evidenceFor(attempt, wanted.id);
    const mark = holds === undefined ? h("span", { class: "mark open" }, "?") : h("span", { class: `mark ${holds ? "held" : "broken"}` }, holds ? "✔" : "✘");
    const needsWord = holds === undefined && this.isAsked;
    const no = h("button", { type: "button", class: "quiet", "aria-pressed": String(this.refused.has(wanted.id)), onclick: () => this.refuse(wanted.id) }, "no");
    return h(
      "li",
      { "data-criterion": wanted.id, id: `criterion-${wanted.id}` },
      mark,
      h("div", {}, h("strong", {}, `${wanted.id} `), said(wanted.verify_command.length ? wanted.verify_command.join(" ") : wanted.statement), wanted.required ? null : h("span", { class: "dim" }, " (wanted, not required)"),
        h("p", { class: "dim" }, theirs.length ? theirs.map((text) => [claimed(`agent says ${text}`), " "]) : "the agent shows nothing for it", ours ? [h("span", { class: `chip ours ${ours.passed ? "good" : "bad"}` }, `we ran it: ${ours.evidence ? `exit ${ours.evidence.exit_code ?? 0}` : ours.passed ? "passed" : "failed"}`)] : wanted.verify_command.length ? " not run by us yet" : null),
        ours?.detail && !ours.passed ? h("pre", { tabindex: "0" }, ours.detail) : null,
        needsWord ? h("p", { class: "actions" }, h("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: (event) => this.agree(event, wanted.id) }, "ok"), no) : null,
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
    replace(this.change, title("Change"), h("p", { class: "dim" }, "As the author's worker handed it in; changed tests first. Click a line number to leave a note."), holder);
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
    replace(holder, diffView(text, this.notes, () => this.noted()));
    scrollToPlace(holder);
  }

  // base to each attempt, and each attempt to the one after it.
  compareTabs(withDiff) {
    const choices = withDiff.flatMap((one, place) => [
      [String(one.attempt), `attempt ${one.attempt}`],
      ...(place ? [[`${withDiff[place - 1].attempt}>${one.attempt}`, `${withDiff[place - 1].attempt} → ${one.attempt}`]] : []),
    ]);
    if (choices.length < 2) return h("span", { class: "dim" }, "against its base");
    const now = this.compared || String(withDiff.at(-1).attempt);
    const choose = (value) => {
      this.compared = value;
      this.drawChange(withDiff);
    };
    return h("div", { class: "tabs", role: "group", "aria-label": "Compare with the base" }, choices.map(([value, text]) =>
      h("button", { type: "button", "aria-pressed": String(value === now), onclick: () => choose(value) }, text)));
  }
}

// What became of an attempt; solid green is kept for what was proven.
function statusChip(attempt) {
  const proven = attempt.status === "accepted" && gradeName(attempt.finding?.proof?.grade) === "PROVEN";
  return chip(proven ? "accepted, PROVEN" : plain(attempt.status), proven ? "good" : tone(attempt.status));
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

// true and false are the verifier's word; undefined: nobody has proven it either way.
export function provenBy(attempt, criterionId) {
  return attempt.finding?.criteria.find((one) => one.criterion_id === criterionId)?.passed;
}

// What the agent's own evidence says about a criterion, never more than its word.
export function evidenceFor(attempt, criterionId) {
  const claims = (attempt.work?.claims ?? []).filter((claim) => claim.criterion_ids.includes(criterionId));
  const ids = new Set(claims.flatMap((claim) => claim.evidence_ids));
  return (attempt.work?.evidence ?? [])
    .filter((one) => ids.has(one.id))
    .slice(0, 4)
    .map((one) => (word(one.kind) === "COMMAND" ? `exit ${one.exit_code ?? 0}` : plain(one.kind)));
}

// Files that the verifier found changed and that were not handed in.
function otherFiles(attempt) {
  const handedIn = new Set((attempt.work?.changed_files ?? []).map((one) => one.path));
  return (attempt.finding?.proof?.changed_files ?? []).map((one) => one.path).filter((path) => !handedIn.has(path));
}

// What became of the attempt: each reason once.
function verdict(attempt) {
  const grade = gradeName(attempt.finding?.proof?.grade);
  const reasons = [...new Set([...(attempt.finding?.proof?.reasons ?? []), ...attempt.judgements.map((one) => one.reason)])].filter(Boolean);
  const questions = attempt.finding?.proof?.questions ?? [];
  if (!grade && reasons.length === 0 && questions.length === 0) return null;
  const refused = attempt.status === "rejected";
  return h(
    "div",
    { class: `verdict ${refused ? "refused" : ""}`, id: "verdict" },
    refused ? h("strong", {}, "Caught and refused. ") : grade ? chip(grade, tone(grade)) : null,
    reasons.slice(0, 6).map((text) => h("p", {}, said(text))),
    questions.map((text) => h("p", {}, "Somebody has to say yes: ", said(text))),
  );
}

// What we ran ourselves, test by test.
function commandsView(proof) {
  if (!proof || proof.commands.length === 0) return null;
  const turned = proof.commands.flatMap((one) => one.tests).slice(0, 40);
  return h(
    "details",
    { class: "ran" },
    h("summary", {}, `We ran ${proof.commands.reduce((sum, one) => sum + one.executed, 0)} tests with the base's own files, isolated by ${proof.isolation}`),
    h("ul", {}, turned.map((one) => h("li", {}, chip(plain(one.outcome), word(one.outcome) === "PASSED" ? "good" : "bad"), h("code", {}, one.id), h("span", { class: "dim" }, ` before: ${plain(one.before)}`)))),
  );
}

function filesView(attempt) {
  const files = attempt.work?.changed_files ?? [];
  if (files.length === 0) return nothing("No file was changed.");
  return [
    h("p", { class: "dim" }, "This work came without a readable diff; its files:"),
    h("ul", { class: "files" }, files.slice(0, 500).map((one) => h("li", {}, h("code", {}, one.path), ` ${plain(one.change)}`))),
  ];
}

function wantedView(run) {
  if (run.acceptance_criteria.length === 0) return null;
  return [
    h("h3", {}, "What must hold"),
    h("ul", { class: "criteria" }, run.acceptance_criteria.map((one) => h("li", {}, h("span", { class: "mark open" }, "?"), h("div", {}, h("strong", {}, `${one.id} `), said(one.statement))))),
  ];
}

// The open question with every answer and what comes of it, and what has been shown so far beside it.
export function questionView(run) {
  const { question } = run;
  const all = question.takes.map((kind) => {
    const { title, then } = answerRule(kind);
    return { title, then, style: "", act: () => askAnswer(run, kind) };
  });
  return h(
    "div",
    { class: "asked", role: "note" },
    h("p", {}, chip(questionWord(question), "ask"), " ", h("strong", {}, said(question.text))),
    choices(all),
  );
}
