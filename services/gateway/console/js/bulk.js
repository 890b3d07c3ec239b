// @ts-check
// What is done to all picked runs at once, with the consequence said before and what failed said after.

import { answerRule } from "./actions.js";
import { again } from "./again.js";
import { change, ORCHESTRATOR } from "./api.js";
import { look } from "./counts.js";
import { dialog, field } from "./dialogs.js";
import { h, replace, toast } from "./dom.js";
import { word } from "./words.js";

const AT_ONCE = 4;
const ENDED = ["FAILED", "DONE", "CANCELLED"];

export class BulkBar {
  picked;
  changed;

  // picked: runs by id; changed: called when nothing is picked any more.
  constructor(picked, changed) {
    Object.assign(this, { picked, changed });
    this.element = h("div", { class: "bulk", role: "region", "aria-label": "Picked runs", hidden: true });
    this.drawn = "";
  }

  get runs() {
    return [...this.picked.values()];
  }

  draw() {
    const runs = this.runs;
    const key = JSON.stringify(runs.map((run) => [run.id, run.attention]));
    if (key === this.drawn) return;
    this.drawn = key;
    this.element.hidden = runs.length === 0;
    const live = runs.filter((run) => !ENDED.includes(word(run.attention)));
    const asked = runs.filter((run) => run.question);
    const ended = runs.filter((run) => ENDED.includes(word(run.attention)));
    const button = (title, these, act, style) =>
      these.length
        ? h("button", { type: "button", class: style, onclick: () => act(these) }, `${title} ${these.length}`)
        : null;
    replace(
      this.element,
      h("strong", {}, `${runs.length} picked`),
      button("cancel", live, (these) => this.cancel(these), "danger"),
      alike(asked) ? button("answer", asked, (these) => this.answer(these)) : null,
      button("retry", ended, (these) => this.retry(these)),
      button("label", runs, (these) => this.label(these)),
      h("button", { type: "button", class: "quiet", onclick: () => this.clear() }, "pick none"),
    );
  }

  clear() {
    this.picked.clear();
    this.draw();
    this.changed();
  }

  cancel(runs) {
    const then = `${runs.length} runs end for good: their assignments, pipelines and workflows are cancelled. What was accepted so far stays.`;
    return dialog(
      `Cancel ${runs.length} runs`,
      then,
      [field("reason", "Why", {})],
      ({ reason }) =>
        this.each(runs, "cancelled", (run) => change(ORCHESTRATOR, "CancelRun", { run_id: run.id, reason })),
      true,
    );
  }

  answer(runs) {
    const takes = runs[0].question.takes;
    const choices = takes.map((kind) => ({ value: kind, title: answerRule(kind).title }));
    const fields = [
      field("answer", "Answer", { choices }),
      field("text", "Words that go with it, where the answer needs some", {}),
    ];
    return dialog(
      `Answer ${runs.length} questions alike`,
      "Each of them is given the same answer.",
      fields,
      ({ answer, text }) =>
        this.each(runs, "answered", (run) =>
          change(ORCHESTRATOR, "Answer", { run_id: run.id, question_id: run.question.id, answer, text }),
        ),
    );
  }

  retry(runs) {
    const then = `${runs.length} new runs are started with the same words and proofs; the old ones stay as they are.`;
    return dialog(`Retry ${runs.length} runs`, then, [], () => this.each(runs, "started again", again));
  }

  label(runs) {
    const then = "The label is set on each of them; an empty value takes it away.";
    const fields = [
      field("key", "Label", { required: true, maxlength: "64" }),
      field("value", "Value", { maxlength: "256" }),
    ];
    return dialog(`Label ${runs.length} runs`, then, fields, ({ key, value }) =>
      this.each(runs, "labelled", (run) =>
        change(ORCHESTRATOR, "LabelRun", { run_id: run.id, labels: { [key]: value } }),
      ),
    );
  }

  // A few at a time; what fails stays picked.
  async each(runs, done, act) {
    const waiting = [...runs];
    const failed = [];
    const work = async () => {
      for (let run = waiting.shift(); run; run = waiting.shift()) {
        try {
          await act(run);
          this.picked.delete(run.id);
        } catch (error) {
          failed.push(error.message);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    this.draw();
    this.changed();
    look().catch(() => {});
    toast(`${runs.length - failed.length} ${done}`, "good");
    if (failed.length) throw new Error(`${failed.length} could not be ${done}: ${failed[0]}`);
  }
}

function alike(runs) {
  return runs.length > 0 && new Set(runs.map((run) => run.question.kind)).size === 1;
}
