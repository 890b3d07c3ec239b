// @ts-check
// The runs of a list as they are and as they change: pages first, then every transition of the store.

import { call, FIRST_LIVING, ORCHESTRATOR, read } from "./api.js";
import { throttle } from "./dom.js";
import { watch } from "./watch.js";
import { ATTENTION, belongs, word } from "./words.js";

const AT_ONCE = 8;
const REDRAW = 16;
const FIRST_PAGE = 100;
const NEXT_PAGES = 1000;
const MOST = 20000;
const RANKS = Object.keys(ATTENTION);
const LIVING = ["NEEDS_YOU", "STUCK", "WORKING"];

// What a list shows of runs that live, then of runs that ended, the latest end first.
function lanes(filter) {
  const wanted = filter.attention.length ? filter.attention : RANKS;
  const full = (names) => names.map((name) => `ATTENTION_${name}`);
  const living = full(wanted.filter((name) => LIVING.includes(name)));
  const ended = full(wanted.filter((name) => !LIVING.includes(name)));
  const rest = restOf(filter);
  return [
    ...(living.length ? [{ ...rest, attention: living }] : []),
    ...(ended.length ? [{ ...rest, attention: ended, order: "RUN_ORDER_ENDED" }] : []),
  ];
}

function restOf(filter) {
  return { text: filter.text, labels: filter.labels, session_id: filter.session, view: "RUN_VIEW_LINE" };
}

export class RunFeed {
  filter;
  signal;
  runs = new Map();
  seen = new Map();
  dirty = new Set();
  busy = false;
  loaded = false;

  // filter: { attention: names, text, labels, session }
  constructor({ filter, signal, onChange }) {
    Object.assign(this, { filter, signal });
    this.changed = throttle(() => signal.aborted || onChange(this), REDRAW);
    this.draw = onChange;
  }

  // Whoever needs somebody first, then the stuck, those at work, and the ended ones by their end.
  get list() {
    return [...this.runs.values()].sort(byAttention);
  }

  async start() {
    let followed = false;
    const found = new Map();
    for (const lane of lanes(this.filter)) {
      for await (const page of laneOf(lane)) {
        if (this.signal.aborted) return;
        for (const run of page.runs) {
          found.set(run.id, run);
          this.keep(run);
        }
        if (!followed) this.follow(page.newest_position ?? 0);
        followed = true;
        this.draw(this);
        if (this.runs.size >= MOST) break;
      }
    }
    this.loaded = true;
    this.changed();
  }

  // The same again, for what changes without a transition: agents that come and go.
  async again() {
    if (!this.loaded || this.signal.aborted) return;
    this.loaded = false;
    const found = new Map();
    for (const lane of lanes(this.filter)) {
      const page = { page_size: FIRST_PAGE };
      const answer = await call(ORCHESTRATOR, "ListRuns", { ...lane, page }, this.signal).catch(() => ({ runs: [] }));
      for (const run of answer.runs) found.set(run.id, run);
    }
    for (const [id, run] of this.runs) {
      if (!found.has(id) && LIVING.includes(word(run.attention))) this.dirty.add(id);
    }
    for (const run of found.values()) this.keep(run);
    this.loaded = true;
    this.changed();
    this.refresh();
  }

  // A line says by itself whether its run belongs here, but for the words that are searched: those the server finds.
  async follow(position) {
    const onItem = ({ transition, lines: [line] }) => {
      if (line && !this.filter.text) this.take(line);
      else if (line || transition.kind !== "run") this.dirty.add(transition.run_id || transition.entity_id);
      this.refresh();
    };
    const request = { after_position: position, with_line: true };
    await watch(ORCHESTRATOR, "WatchChanges", request, { onItem, signal: this.signal });
  }

  take(line) {
    this.seen.set(line.id, Number(line.seq));
    if (belongs(this.filter, line)) this.runs.set(line.id, line);
    else this.runs.delete(line.id);
    this.changed();
  }

  // A run of a page that was on its way while the stream brought a newer line is old.
  keep(run) {
    if (Number(run.seq) >= (this.seen.get(run.id) ?? 0)) this.runs.set(run.id, run);
  }

  async refresh() {
    if (this.busy) return;
    this.busy = true;
    while (this.dirty.size && !this.signal.aborted) {
      const some = [...this.dirty].slice(0, AT_ONCE);
      for (const id of some) this.dirty.delete(id);
      await Promise.all(some.map((id) => this.reload(id)));
      this.changed();
    }
    this.busy = false;
  }

  async reload(id) {
    try {
      const attention = this.filter.attention.map((name) => `ATTENTION_${name}`);
      const wanted = { ...restOf(this.filter), attention, id_prefix: id, page: { page_size: 1 } };
      const [run] = (await call(ORCHESTRATOR, "ListRuns", wanted, this.signal)).runs;
      if (run) this.keep(run);
      else this.runs.delete(id);
    } catch {
      if (!this.signal.aborted) setTimeout(() => this.retry(id), 500);
    }
  }

  retry(id) {
    this.dirty.add(id);
    this.refresh();
  }
}

async function* laneOf(lane) {
  let token = "";
  do {
    const page = { page_size: token ? NEXT_PAGES : FIRST_PAGE, page_token: token };
    const asks = () => call(ORCHESTRATOR, "ListRuns", { ...lane, page });
    const answer = await (!token && isFirstOfAll(lane) ? read(ORCHESTRATOR, "ListRuns", FIRST_LIVING) : asks());
    yield answer;
    token = answer.next_page_token;
  } while (token);
}

// Whether a lane begins with what was asked for before this script was there.
function isFirstOfAll({ attention, text, labels, session_id: session }) {
  return `${attention}` === `${FIRST_LIVING.attention}` && !text && !session && Object.keys(labels).length === 0;
}

function byAttention(one, other) {
  const rank = RANKS.indexOf(word(one.attention)) - RANKS.indexOf(word(other.attention));
  const bothEnded = one.ended_at && other.ended_at;
  if (rank && !bothEnded) return rank;
  const [first, second] = bothEnded ? [one.ended_at, other.ended_at] : [one.created_at, other.created_at];
  if (first !== second) return first < second ? 1 : -1;
  return one.id < other.id ? 1 : -1;
}
