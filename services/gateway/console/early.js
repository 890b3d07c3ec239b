// @ts-check
// Runs before everything else, while the page itself is still read: asks for what the first view shows. The other
// scripts find what it knows under `early`.

(() => {
  const RUNS = "orchestrator.OrchestratorService";
  const PATIENCE = 20000;
  // The beginning of the list of runs as everybody sees it first.
  const FIRST_LIVING = {
    attention: ["ATTENTION_NEEDS_YOU", "ATTENTION_STUCK", "ATTENTION_WORKING"],
    view: "RUN_VIEW_LINE",
    "page.page_size": 50,
  };
  /** @type {Map<string, Promise<Response | null>>} */
  const begun = new Map();

  // Who calls, for which project; nothing where both are the usual ones.
  function headers() {
    const token = sessionStorage.getItem("token");
    const proof = localStorage.getItem("console");
    const project = new URLSearchParams(location.search).get("project");
    return {
      ...(project ? { "pointsman-project": project } : {}),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(proof ? { "pointsman-console": proof } : {}),
    };
  }

  function addressOf(service, method, request) {
    const query = Object.entries(request).flatMap(([name, value]) =>
      [value].flat().map((one) => `${name}=${encodeURIComponent(one)}`),
    );
    return `/api/v1/${service}/${method}${query.length ? `?${query.join("&")}` : ""}`;
  }

  function begin(method, request) {
    const address = addressOf(RUNS, method, request);
    const answer = fetch(address, { headers: headers(), signal: AbortSignal.timeout(PATIENCE) });
    begun.set(
      address,
      answer.catch(() => null),
    );
  }

  // What was asked for early, once; null where it was not, or nobody answered.
  async function begunEarly(address) {
    const found = begun.get(address);
    begun.delete(address);
    return (await found) ?? null;
  }

  const [, id] = /^\/runs\/([\w.-]+)$/.exec(location.pathname) ?? [];
  const isList = /^\/(runs)?$/.test(location.pathname) && /^(\?project=[^&]*)?$/.test(location.search);
  if (id) begin("GetRun", { run_id: id });
  else if (isList) begin("ListRuns", FIRST_LIVING);
  globalThis.early = { RUNS, PATIENCE, FIRST_LIVING, headers, addressOf, begunEarly };
})();
