// @ts-check
// An open question where a run is looked at.

import { answerRule, askAnswer, choices } from "./actions.js";
import { chip, h, said } from "./dom.js";
import { questionWord, word } from "./words.js";

const ABOUT_PLAN = new Set(["DEBATE", "FEEDBACK_ESCALATED", "REPLAN_LIMIT", "LOW_CONFIDENCE"]);

const ABOUT_WORK = new Set(["ACCEPTANCE", "PIPELINE_ESCALATED"]);

export function isAboutWork(question) {
  return Boolean(question) && ABOUT_WORK.has(word(question.kind));
}

export function isAboutPlan(question) {
  return Boolean(question) && ABOUT_PLAN.has(word(question.kind)) && questionWord(question) !== "work failed";
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
