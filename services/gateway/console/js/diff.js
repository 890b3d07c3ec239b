// @ts-check
// A diff to be read: changed tests first, colours, folded files; a click on a line leaves a note that goes into Reject.

import { chip, h, nothing } from "./dom.js";
import { isTest, parsePatch } from "./patch.js";
import { languageOf, pieces } from "./syntax.js";

const OPEN_LINES = 400;
const MARKS = { added: "+", removed: "−", same: " " };

// notes: Map of "path:line" to text, kept while the page is open; changed: called when one was written.
export function diffView(text, notes, changed) {
  const files = parsePatch(text);
  if (files.length === 0) return [nothing("The diff is empty.")];
  let room = OPEN_LINES;
  return files.map((file, number) => {
    const size = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
    room -= size;
    return fileView(file, number, { notes, changed, open: number === 0 || room > 0 });
  });
}

function fileView(file, number, { notes, changed, open }) {
  const body = h("div", { class: "hunks" });
  const box = h(
    "details",
    { class: "file", id: `file-${number}`, "data-path": file.path },
    h(
      "summary",
      {},
      h("code", {}, file.path),
      file.change === "modified" ? null : chip(file.change, "dim"),
      isTest(file.path) ? chip("test", "ask") : null,
      h("span", { class: "plus" }, ` +${file.added}`),
      h("span", { class: "minus" }, ` −${file.removed}`),
    ),
    body,
  );
  const fill = () => {
    if (body.childElementCount === 0) body.append(...hunks(file, number, notes, changed));
  };
  box.addEventListener("toggle", () => box.open && fill());
  if (open) {
    fill();
    box.open = true;
  }
  return box;
}

function hunks(file, number, notes, changed) {
  if (file.binary) return [nothing("A binary file.")];
  const language = languageOf(file.path);
  return file.hunks.map((hunk) =>
    h(
      "div",
      { class: "hunk" },
      h(
        "p",
        { class: "dim where" },
        `line ${hunk.lines.find((line) => line.after)?.after ?? hunk.lines[0]?.before ?? ""} ${hunk.title}`,
      ),
      h(
        "table",
        { class: "lines" },
        h(
          "tbody",
          {},
          hunk.lines.map((line) => lineRow(line, { file, number, language, notes, changed })),
        ),
      ),
    ),
  );
}

function lineRow(line, { file, number, language, notes, changed }) {
  const at = line.after || line.before;
  const key = `${file.path}:${at}`;
  const id = `line-${number}-${line.kind === "removed" ? "b" : ""}${at}`;
  const row = h(
    "tr",
    { class: line.kind, id },
    h(
      "td",
      { class: "at" },
      h(
        "button",
        {
          type: "button",
          class: "plain",
          "aria-label": `Note on line ${at}`,
          onclick: () => note(row, key, notes, changed),
        },
        String(at),
      ),
    ),
    h("td", { class: "mark" }, MARKS[line.kind]),
    h(
      "td",
      { class: "code" },
      pieces(line.text, language).map(([kind, text]) => (kind ? h("span", { class: `s-${kind}` }, text) : text)),
    ),
  );
  if (notes.has(key)) queueMicrotask(() => note(row, key, notes, changed));
  return row;
}

function note(row, key, notes, changed) {
  if (row.nextElementSibling?.classList.contains("note"))
    return row.nextElementSibling.querySelector("textarea").focus();
  const text = h("textarea", { rows: 2, "aria-label": `Note on ${key}`, placeholder: "Goes into Reject" });
  text.value = notes.get(key) ?? "";
  text.addEventListener("input", () => {
    if (text.value.trim()) notes.set(key, text.value.trim());
    else notes.delete(key);
    changed();
  });
  row.after(h("tr", { class: "note" }, h("td", { colspan: "3" }, text)));
  return text.focus();
}

// Two attempts: what the later one does otherwise.
export function comparedView(files) {
  if (files.length === 0) return [nothing("Both attempts change the same lines in the same way.")];
  return files.map((file) =>
    h(
      "details",
      { class: "file", open: true },
      h("summary", {}, h("code", {}, file.path)),
      h(
        "table",
        { class: "lines" },
        h(
          "tbody",
          {},
          file.lines.map((line) =>
            h(
              "tr",
              { class: line.kind },
              h("td", { class: "mark" }, MARKS[line.kind]),
              h("td", { class: "code" }, line.text),
            ),
          ),
        ),
      ),
    ),
  );
}
