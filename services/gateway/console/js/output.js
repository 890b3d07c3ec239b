// @ts-check
// What the agents of a run print, as they print it, and whole once they have ended: searched, with the way to the first
// error, attempts side by side.

import { AGENTS } from "./api.js";
import { download, textOf } from "./artifact.js";
import { h, nothing, replace, said, toast } from "./dom.js";
import { watch } from "./watch.js";
import { plain, size, tame } from "./words.js";

const ERROR = /\b(error|errors|failed|failure|traceback|exception|panic|fatal)\b/i;
const COLOURS = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b\x0c\x0e-\x1f]/g;
const MOST_LINES = 20000;
// So much of whole transcripts comes by itself; the rest when somebody asks for it.
const UNASKED_BYTES = 524288;

export class OutputView {
  runId;
  signal;
  started = false;
  streams = new Map();
  transcripts = new Map();
  room = UNASKED_BYTES;
  hits = [];
  hit = -1;

  constructor(runId, signal) {
    Object.assign(this, { runId, signal });
    this.search = h("input", {
      type: "search",
      "aria-label": "Search the output",
      placeholder: "Search the output",
      oninput: () => this.find(this.search.value),
    });
    this.search.addEventListener("keydown", (event) => event.key === "Enter" && this.go(event.shiftKey ? -1 : 1));
    this.found = h("span", { class: "dim", role: "status" });
    this.first = h("button", { type: "button", id: "first-error", onclick: () => this.firstError() }, "First error");
    this.follows = h("input", { type: "checkbox", id: "follow-output", checked: true });
    this.streamsBox = h("div", { class: "streams" });
    this.none = nothing("Nothing has been printed yet.");
    this.element = h(
      "div",
      {},
      h(
        "div",
        { class: "filters" },
        this.search,
        this.found,
        this.first,
        h("label", { for: "follow-output" }, this.follows, " follow"),
      ),
      this.none,
      this.streamsBox,
    );
  }

  // The stream is asked for when somebody looks, not before.
  start() {
    if (this.started) return;
    this.started = true;
    this.offer();
    const onItem = ({ chunk }) => this.take(chunk);
    watch(AGENTS, "WatchOutput", { run_id: this.runId, follow: true }, { onItem, signal: this.signal });
  }

  // Assignments with the transcripts of the leases that have ended.
  know(assignments) {
    for (const one of assignments)
      for (const kept of one.transcripts) this.transcripts.set(`${one.id}/${kept.epoch}`, { ...one, ...kept });
    if (this.started) this.offer();
  }

  // Each lease that has ended gets the way to all of its output; what is short, and was not seen whole, comes by itself.
  offer() {
    for (const [key, kept] of this.transcripts) {
      const stream = this.streams.get(key) ?? this.open(key, kept);
      if (stream.links.childElementCount) continue;
      const bytes = Number(kept.artifact.size_bytes);
      const show = h(
        "button",
        { type: "button", class: "quiet", onclick: () => this.showWhole(stream, kept, show) },
        "show all",
      );
      const save = () => download(kept.artifact, "txt").catch((error) => toast(error.message, "bad"));
      replace(
        stream.links,
        show,
        h("button", { type: "button", class: "quiet", onclick: save }, `download ${size(bytes)}`),
      );
      show.hidden = stream.isWhole && stream.end > 0;
      if (show.hidden || bytes > this.room) continue;
      this.room -= bytes;
      this.showWhole(stream, kept, show);
    }
  }

  async showWhole(stream, kept, show) {
    show.disabled = true;
    try {
      const text = await textOf(kept.artifact.sha256);
      stream.end = Infinity;
      stream.rest = null;
      replace(stream.lines);
      this.write(stream, text.replace(COLOURS, ""));
      show.hidden = true;
    } catch (error) {
      toast(error.message, "bad");
    }
    show.disabled = false;
  }

  take(chunk) {
    const key = `${chunk.assignment_id}/${chunk.epoch}`;
    const stream = this.streams.get(key) ?? this.open(key, chunk);
    const offset = Number(chunk.offset);
    const letters = Array.from(chunk.text);
    if (offset + letters.length <= stream.end) return;
    if (offset > stream.end) {
      stream.isWhole = false;
      const missing = stream.end ? "[some output is missing here]" : "[the beginning is not kept here]";
      stream.lines.append(h("span", { class: "line dim" }, `${missing}\n`));
      stream.rest = null;
    }
    const text = letters.slice(Math.max(0, stream.end - offset)).join("");
    stream.end = offset + letters.length;
    this.write(stream, text.replace(COLOURS, ""));
  }

  open(key, { purpose, task_id: task, stage: name, agent_id: agent, epoch, attempt = 0 }) {
    this.none.hidden = true;
    const lines = h("pre", { tabindex: "0", "aria-label": `Output of ${agent}` });
    const links = h("span", { class: "actions" });
    const about = [plain(purpose), task, name].filter(Boolean).join(" ");
    const box = h(
      "section",
      { class: "stream", "data-stream": key },
      h(
        "div",
        { class: "bar" },
        h(
          "h3",
          {},
          about,
          " ",
          h(
            "span",
            { class: "dim" },
            "by ",
            said(agent),
            attempt > 1 ? `, attempt ${attempt}` : "",
            `, lease ${epoch}`,
          ),
        ),
        links,
      ),
      lines,
    );
    const stream = { lines, links, end: 0, rest: null, isWhole: true };
    this.streams.set(key, stream);
    this.streamsBox.append(box);
    return stream;
  }

  // Whole lines are elements; the last one may still grow.
  write(stream, text) {
    const parts = text.split("\n");
    parts.forEach((part, place) => {
      if (!stream.rest) {
        stream.rest = h("span", { class: "line" });
        stream.lines.append(stream.rest);
      }
      stream.rest.append(tame(part));
      if (ERROR.test(stream.rest.textContent)) stream.rest.classList.add("error");
      if (place < parts.length - 1) {
        stream.rest.append("\n");
        stream.rest = null;
      }
    });
    while (stream.lines.childElementCount > MOST_LINES) stream.lines.firstElementChild.remove();
    if (this.follows.checked) stream.lines.scrollTop = stream.lines.scrollHeight;
    if (this.search.value) this.find(this.search.value);
  }

  find(text) {
    for (const one of this.hits) one.classList.remove("hit", "now");
    const wanted = text.toLowerCase();
    const lines = [...this.streamsBox.querySelectorAll(".line")];
    this.hits = wanted ? lines.filter((one) => one.textContent.toLowerCase().includes(wanted)) : [];
    for (const one of this.hits) one.classList.add("hit");
    this.hit = -1;
    replace(this.found, wanted ? `${this.hits.length} ${this.hits.length === 1 ? "line" : "lines"}` : "");
    if (this.hits.length) this.go(1);
  }

  go(move) {
    if (this.hits.length === 0) return;
    this.hits[this.hit]?.classList.remove("now");
    this.hit = (this.hit + move + this.hits.length) % this.hits.length;
    this.reveal(this.hits[this.hit]);
  }

  firstError() {
    const line = this.streamsBox.querySelector(".line.error");
    replace(this.found, line ? "" : "no line looks like an error");
    if (line) this.reveal(line);
  }

  reveal(line) {
    this.follows.checked = false;
    line.classList.add("now");
    line.scrollIntoView({ block: "center" });
    setTimeout(() => line.classList.remove("now"), 4000);
  }
}
