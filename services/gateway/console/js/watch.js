// @ts-check
// Streams that come back: server-sent events over fetch, resumed after the last id that was seen.

import { headers } from "./api.js";

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 3000;
const SILENCE = 45000;
const OUT_OF_SIGHT = 20000;
const CLOSED = "signed out";
const states = new Map();

function show(key, state) {
  if (state === null) states.delete(key);
  else states.set(key, state);
  const badge = document.getElementById("live");
  const all = [...states.values()];
  const worst = all.includes(CLOSED) ? CLOSED : "reconnecting";
  const now = all.length === 0 ? "ready" : all.every((one) => one === "live") ? "live" : worst;
  if (badge.textContent !== now) badge.textContent = now;
  badge.dataset.state = now;
}

// Whether anybody answers at all: a call that fails says so long before a silent stream does.
const PULSE = Symbol("pulse");

export function pulse(isThere) {
  show(PULSE, isThere ? null : "reconnecting");
}

addEventListener("offline", () => pulse(false));

// Follow a stream until `signal` aborts, the stream ends, or there is nothing to follow.
export async function watch(service, method, request, { onItem, onGone = undefined, signal }) {
  const key = Symbol(method);
  const place = { last: "" };
  let pause = FIRST_PAUSE;
  show(key, "reconnecting");
  while (!signal.aborted) {
    let state = "reconnecting";
    await inSight(signal);
    try {
      const outcome = await follow(`/api/v1/${service}/${method}?${query(request)}`, place, signal, {
        onOpen: () => {
          pause = FIRST_PAUSE;
          show(key, "live");
        },
        onItem,
      });
      if (outcome === "end" || outcome === "gone") {
        if (outcome === "gone") onGone?.();
        break;
      }
      if (outcome === CLOSED) state = CLOSED;
    } catch {
      if (signal.aborted) break;
    }
    show(key, state);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
  show(key, null);
}

// For what has no stream: look again and again until `signal` aborts. The caller hears of a first look that fails.
export async function poll(milliseconds, signal, load) {
  const key = Symbol("poll");
  const look = async () => {
    try {
      await load();
      if (!signal.aborted) show(key, "live");
    } catch (error) {
      if (!signal.aborted) show(key, "reconnecting");
      throw error;
    }
  };
  const timer = setInterval(() => document.hidden || look().catch(() => {}), milliseconds);
  signal.addEventListener("abort", () => {
    clearInterval(timer);
    show(key, null);
  });
  await look();
}

// A page that nobody looks at gives its connection back: browsers have only a few for each server.
function inSight(signal) {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
    signal.addEventListener("abort", resolve, { once: true });
  });
}

function whenHidden(stop) {
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(stop, OUT_OF_SIGHT);
  };
  document.addEventListener("visibilitychange", look);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

function query(request) {
  return new URLSearchParams(Object.entries(request).map(([name, value]) => [name, String(value)]));
}

async function follow(url, place, signal, { onOpen, onItem }) {
  const silent = new AbortController();
  const stop = () => silent.abort();
  signal.addEventListener("abort", stop);
  const forget = whenHidden(stop);
  let timer = setTimeout(stop, SILENCE);
  try {
    const resume = place.last ? { "last-event-id": place.last } : {};
    const answer = await fetch(url, {
      headers: { accept: "text/event-stream", ...headers(), ...resume },
      signal: silent.signal,
    });
    // A session ends with its gateway; whoever opens the console again, in any tab, opens this page too.
    if (answer.status === 401) return CLOSED;
    if (!answer.ok) return answer.status < 429 ? "gone" : "broken";
    for await (const event of events(answer.body)) {
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE);
      if (event.kind === "open") onOpen();
      const outcome = take(event, place, onItem);
      if (outcome) return outcome;
    }
    return "broken";
  } finally {
    clearTimeout(timer);
    forget();
    signal.removeEventListener("abort", stop);
  }
}

function take(event, place, onItem) {
  if (event.kind === "end") return "end";
  if (event.kind === "refusal") return JSON.parse(event.data).error.reason === "NOT_FOUND" ? "gone" : "broken";
  if (event.kind === "message" && event.data) {
    if (event.id) place.last = event.id;
    onItem(JSON.parse(event.data));
  }
  return "";
}

export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) yield event(block);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function event(block) {
  const found = { kind: block.startsWith(": open") ? "open" : "message", id: "", data: "" };
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) found.kind = line.slice(7);
    else if (line.startsWith("id: ")) found.id = line.slice(4);
    else if (line.startsWith("data: ")) found.data += line.slice(6);
  }
  return found;
}
