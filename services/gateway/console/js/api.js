// @ts-check
// Calls of the services: one function for every RPC, errors with their reason and fields.

const { RUNS, PATIENCE, addressOf, begunEarly } = globalThis.early;
export const FIRST_LIVING = globalThis.early.FIRST_LIVING;
export const headers = globalThis.early.headers;
export const ORCHESTRATOR = RUNS;
export const AGENTS = "orchestrator.AgentService";
export const ARTIFACTS = "orchestrator.ArtifactService";
export const LANDING = "orchestrator.LandingService";
export const SCHEDULES = "orchestrator.ScheduleService";
export const PIPELINE = "pipeline.PipelineService";
export const WORKFLOW = "workflow.WorkflowService";
export const ROUTER = "router.RouterService";

const TRIES = 4;

class Refused extends Error {
  constructor(status, error) {
    super(error.message || error.reason);
    this.status = status;
    this.reason = error.reason;
    this.metadata = error.metadata ?? {};
    this.violations = error.violations ?? [];
  }
}

// The token lives as long as the tab.
export function signIn(token) {
  sessionStorage.setItem("token", token);
}

export async function call(service, method, request, signal) {
  const answer = await fetch(`/api/v1/${service}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers() },
    body: JSON.stringify(request ?? {}),
    signal,
  });
  return bodyOf(answer);
}

const kept = new Map();
const MOST_KEPT = 40;

// A read by its address alone: it may have begun before this script was there, and what has not changed since it was
// read is not sent again.
export async function read(service, method, request = {}) {
  const address = addressOf(service, method, request);
  const before = kept.get(address);
  const known = before ? { "if-none-match": before.tag } : {};
  const options = { headers: { ...headers(), ...known }, signal: AbortSignal.timeout(PATIENCE) };
  const answer = (await begunEarly(address)) ?? (await fetch(address, options));
  if (answer.status === 304 && before) return before.body;
  const body = await bodyOf(answer);
  const tag = answer.headers.get("etag");
  kept.delete(address);
  if (tag) kept.set(address, { tag, body });
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  return body;
}

async function bodyOf(answer) {
  const body = await answer.json().catch(() => ({ error: { message: `the gateway answered ${answer.status}` } }));
  if (!answer.ok) throw new Refused(answer.status, body.error);
  return body;
}

// A change that survives an outage: the same request_id is sent until somebody answers.
export async function change(service, method, request) {
  const sent = { request_id: crypto.randomUUID(), ...request };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call(service, method, sent);
    } catch (error) {
      const passing = !(error instanceof Refused) || error.reason === "UNAVAILABLE";
      if (!passing || attempt === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 300 * attempt));
    }
  }
}

// A small page first, so that there is something to see, then large ones.
async function* pages(service, method, request) {
  let token = "";
  do {
    const page = { page_size: token ? 1000 : 100, page_token: token };
    const answer = await call(service, method, { ...request, page });
    yield answer;
    token = answer.next_page_token;
  } while (token);
}

export async function all(service, method, request, items) {
  const found = [];
  for await (const page of pages(service, method, request)) found.push(...page[items]);
  return found;
}
