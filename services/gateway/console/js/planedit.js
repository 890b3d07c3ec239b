// @ts-check
// The plan where somebody is asked about it: read, changed in place, approved.

import { askAnswer } from "./actions.js";
import { call, change, ORCHESTRATOR } from "./api.js";
import { chip, h, nothing, replace, said, toast } from "./dom.js";
import { newTask, proofLine, taskLines, withoutTask, writtenTask } from "./plandoc.js";
import { word } from "./words.js";

const LOOK_AGAIN = 250;
const LOOKS = 240;
const SIZES = ["", "S", "M", "L"];

export class PlanView {
  run = null;
  plan = null;
  edited = null;

  constructor() {
    this.bar = h("div", { class: "asked", role: "note", id: "plan-question" });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.list = h("ol", { class: "plan-list", id: "plan-list", "aria-label": "Tasks of the plan" });
    this.head = h("div", {}, this.bar, this.problem);
  }

  // Whoever writes is left alone: a plan that came meanwhile is shown when they are done.
  draw(run, plan) {
    Object.assign(this, { run, plan });
    if (!this.isAsked) this.edited = null;
    if (!this.edited) this.redraw();
  }

  get isAsked() {
    return word(this.run?.question?.kind) === "DEBATE";
  }

  redraw() {
    this.bar.hidden = !this.isAsked;
    this.problem.hidden = true;
    if (this.isAsked) replace(this.bar, this.question());
    const shown = this.edited ?? this.plan;
    this.list.hidden = !shown;
    if (shown)
      replace(
        this.list,
        shown.tasks.map((task) => (this.edited ? this.form(task) : reading(task))),
      );
  }

  question() {
    const { question } = this.run;
    const button = (id, text, act, style = "") => h("button", { type: "button", id, class: style, onclick: act }, text);
    const asked = h("p", {}, chip("judge the plan", "ask"), " ", h("strong", {}, said(question.text)));
    const answer = (kind) => () => askAnswer(this.run, `ANSWER_KIND_${kind}`);
    const editing = [
      button("plan-approve", "save and approve", () => this.save(true), "primary"),
      button("plan-save", "save", () => this.save(false)),
      button("plan-add", "add a task", () => this.add()),
      button("plan-leave", "leave it as it was", () => this.stop()),
    ];
    const looking = [
      button("plan-approve", "approve", () => this.attempt(() => this.proceed(this.run)), "primary"),
      this.plan ? button("plan-edit", "edit the plan", () => this.edit()) : nothing("The plan is on its way."),
      button("plan-modify", "have it made anew…", answer("MODIFY")),
      button("plan-escalate", "escalate…", answer("ESCALATE")),
    ];
    return [asked, h("div", { class: "actions" }, this.edited ? editing : looking)];
  }

  edit() {
    this.edited = structuredClone(this.plan);
    this.redraw();
    this.list.querySelector("input")?.focus();
  }

  stop() {
    this.edited = null;
    this.redraw();
    this.bar.querySelector("button")?.focus();
  }

  add() {
    const plan = this.read();
    this.edited = { ...plan, tasks: [...plan.tasks, newTask(plan)] };
    this.redraw();
    this.list.lastElementChild.querySelector("input").focus();
  }

  remove(id) {
    this.edited = withoutTask(this.read(), id);
    this.redraw();
    this.bar.querySelector("#plan-add").focus();
  }

  // The plan as it stands in the fields.
  read() {
    const forms = [...this.list.querySelectorAll("form")];
    const tasks = this.edited.tasks.map((task, place) => {
      const given = new FormData(forms[place]);
      const text = (name) => String(given.get(name) ?? "");
      const fields = Object.fromEntries(
        ["name", "size", "after", "files", "actions", "proof"].map((one) => [one, text(one)]),
      );
      const checks = { tests_may_change: given.has("tests"), quality_gate: given.has("gate") };
      return writtenTask(task, { ...fields, ...checks });
    });
    return { ...this.edited, tasks };
  }

  save(isApproved) {
    return this.attempt(async () => {
      const plan = this.read();
      const { question } = this.run;
      await change(ORCHESTRATOR, "Answer", { ...named(this.run), answer: "ANSWER_KIND_MODIFY", plan });
      this.edited = null;
      this.plan = plan;
      this.redraw();
      if (isApproved) await this.proceed(await askedAgain(this.run.id, question.id));
      else toast("The plan is saved", "good");
    });
  }

  async proceed(run) {
    await change(ORCHESTRATOR, "Answer", { ...named(run), answer: "ANSWER_KIND_PROCEED" });
    toast("The plan is approved", "good");
  }

  async attempt(work) {
    const buttons = [...this.bar.querySelectorAll("button")];
    for (const one of buttons) one.disabled = true;
    this.problem.hidden = true;
    try {
      await work();
    } catch (error) {
      const all = (error.violations ?? []).map((one) => `${one.field}: ${one.description}`);
      this.problem.textContent = [error.message, ...all].join("\n");
      this.problem.hidden = false;
    }
    for (const one of buttons) one.disabled = false;
  }

  form(task) {
    const id = (name) => `plan-${task.id}-${name}`;
    const labelled = (name, text, input) => h("p", { class: "field" }, h("label", { for: id(name) }, text), input);
    const area = (name, text, all, rows) =>
      labelled(name, text, h("textarea", { id: id(name), name, rows }, all.join("\n")));
    const check = (name, text, on) =>
      h("label", {}, h("input", { type: "checkbox", name, id: id(name), checked: on }), ` ${text}`);
    const sizes = SIZES.map((one) => h("option", { value: one, selected: one === task.size }, one || "not said"));
    return h(
      "li",
      { "data-edited": task.id },
      h(
        "form",
        { class: "plan-task", onsubmit: (event) => event.preventDefault() },
        h(
          "div",
          { class: "row" },
          h("strong", { class: "id" }, task.id),
          labelled("name", "Name", h("input", { id: id("name"), name: "name", value: task.name, required: true })),
          labelled("after", "After", h("input", { id: id("after"), name: "after", value: task.depends.join(", ") })),
          labelled("size", "Size", h("select", { id: id("size"), name: "size" }, sizes)),
          h(
            "button",
            { type: "button", class: "quiet danger", onclick: () => this.remove(task.id) },
            `remove ${task.id}`,
          ),
        ),
        h(
          "div",
          { class: "columns" },
          area("files", "Files, one in a line", task.files, 3),
          area("actions", "Steps, one in a line", task.actions, 3),
          area("proof", "Proof, one in a line; a command in `backquotes`", task.acceptance_criteria.map(proofLine), 3),
        ),
        h(
          "p",
          { class: "actions" },
          check("tests", "may change tests", task.tests_may_change),
          check("gate", "asks you when it is done", task.quality_gate),
        ),
      ),
    );
  }
}

function reading(task) {
  const [title, ...rest] = taskLines(task);
  return h(
    "li",
    { "data-read": task.id },
    h("strong", {}, said(title)),
    rest.map((line) => h("p", { class: "dim" }, said(line))),
  );
}

function named(run) {
  return { run_id: run.id, question_id: run.question.id };
}

// The run once it asks about the plan that was just put in its place.
async function askedAgain(runId, before) {
  for (let look = 0; look < LOOKS; look += 1) {
    const { run } = await call(ORCHESTRATOR, "GetRun", { run_id: runId });
    if (run.question && run.question.id !== before) return run;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN));
  }
  throw new Error("The plan is saved, but it is not asked about again yet; approve it once it is.");
}
