// @ts-check
// Dialogs: what will come of it is said first; the focus goes back to where it came from.

import { h } from "./dom.js";

// `list`: suggestions; `choices`: [{ value, title }], one of which is taken.
export function field(
  name,
  title,
  { type = "text", area = false, value = "", list = [], choices = [], required = false, ...rest },
) {
  const id = `field-${name}`;
  const chosen = choices.map((one) => h("option", { value: one.value }, one.title));
  const input = choices.length
    ? h("select", { id, name }, chosen)
    : area
      ? h("textarea", { id, name, rows: 4, required }, value)
      : h("input", { id, name, type, value, required, list: list.length ? `${id}-list` : undefined, ...rest });
  const options = list.length
    ? h(
        "datalist",
        { id: `${id}-list` },
        list.slice(0, 200).map((one) => h("option", { value: one })),
      )
    : null;
  return h("p", { class: "field" }, h("label", { for: id }, title), input, options);
}

export function dialog(title, consequence, fields, act, danger = false) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const confirm = h("button", { type: "submit", class: danger ? "danger" : "primary" }, "Confirm");
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: "dialog-title" }, title),
    h("p", { class: "consequence" }, consequence),
    fields,
    problem,
    h("div", { class: "actions" }, confirm, h("button", { type: "button", onclick: () => box.close() }, "Back")),
  );
  const box = h("dialog", { "aria-labelledby": "dialog-title" }, form);
  const opener = document.activeElement;
  const name = opener?.textContent;
  box.addEventListener("close", () => {
    box.remove();
    giveBack(opener, name);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    confirm.disabled = true;
    try {
      await act(Object.fromEntries(new FormData(form)));
      box.close();
    } catch (error) {
      problem.textContent = [
        error.message,
        ...(error.violations ?? []).map((one) => `${one.field}: ${one.description}`),
      ].join("\n");
      problem.hidden = false;
      confirm.disabled = false;
    }
  });
  document.body.append(box);
  box.showModal();
  return box;
}

// What opened a dialog may have been drawn anew meanwhile, or be gone: then its likeness, else the page itself.
function giveBack(opener, name) {
  if (opener?.isConnected) {
    opener.focus();
    return;
  }
  /** @type {NodeListOf<HTMLElement>} */
  const alike = document.querySelectorAll("main button, main a");
  const likeness = [...alike].find((one) => one.textContent === name);
  (likeness ?? document.getElementById("main")).focus();
}
