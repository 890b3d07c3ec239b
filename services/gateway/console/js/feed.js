// The runs as they are and as they change: pages first, then every transition of the store.

import { call, ORCHESTRATOR, pages } from "./api.js";
import { debounce } from "./dom.js";
import { watch } from "./watch.js";
import { ENDED, RUN_STATES } from "./words.js";

const AT_ONCE = 8;
const REDRAW = 80;
const GLANCE = 5000;
export const LIVE = RUN_STATES.filter((state) => !ENDED.has(state)).map((state) => `RUN_STATE_${state}`);

export class RunFeed {
  constructor({ filter, signal, onChange }) {
    this.filter = filter;
    this.signal = signal;
    this.runs = new Map();
    this.dirty = new Set();
    this.busy = false;
    this.loaded = false;
    this.changed = debounce(() => signal.aborted || onChange(this), REDRAW);
    this.draw = onChange;
  }

  // Newest first.
  get list() {
    return [...this.runs.values()].sort(byAge);
  }

  async start() {
    let first = true;
    for await (const page of pages(ORCHESTRATOR, "ListRuns", this.filter)) {
      if (this.signal.aborted) return;
      for (const run of page.runs) this.runs.set(run.id, run);
      if (first) {
        this.draw(this);
        this.follow(page.newest_position ?? 0);
      } else this.changed();
      first = false;
    }
    this.loaded = true;
    this.changed();
  }

  async follow(position) {
    const onItem = (item) => {
      this.dirty.add(item.transition.run_id || item.transition.entity_id);
      this.refresh();
    };
    await watch(ORCHESTRATOR, "WatchChanges", { after_position: position }, { onItem, signal: this.signal });
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
      const { run } = await call(ORCHESTRATOR, "GetRun", { run_id: id }, this.signal);
      const wanted = !this.filter.states?.length || this.filter.states.includes(run.state);
      if (wanted) this.runs.set(id, run);
      else this.runs.delete(id);
    } catch (error) {
      if (error.reason === "NOT_FOUND") this.runs.delete(id);
      else if (!this.signal.aborted) setTimeout(() => this.again(id), 500);
    }
  }

  again(id) {
    this.dirty.add(id);
    this.refresh();
  }
}

function byAge(one, other) {
  if (one.created_at !== other.created_at) return one.created_at < other.created_at ? 1 : -1;
  return one.id < other.id ? 1 : -1;
}

export function countPeople(runs) {
  const waiting = runs.filter((run) => run.question).length;
  const badge = document.getElementById("people-count");
  badge.textContent = String(waiting);
  badge.hidden = waiting === 0;
}

// On pages that do not list the runs: who waits for a person among the newest live ones, now and then.
export function glance(signal) {
  const look = async () => {
    if (document.hidden) return;
    const { runs } = await call(ORCHESTRATOR, "ListRuns", { states: LIVE, page: { page_size: 200 } }, signal);
    if (!signal.aborted) countPeople(runs);
  };
  const quietly = () => look().catch(() => {});
  const first = setTimeout(quietly, 400);
  const timer = setInterval(quietly, GLANCE);
  signal.addEventListener("abort", () => {
    clearTimeout(first);
    clearInterval(timer);
  });
}
