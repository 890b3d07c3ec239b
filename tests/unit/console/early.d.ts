// What early.js leaves for the modules.
declare var early: {
  RUNS: string;
  PATIENCE: number;
  FIRST_LIVING: { attention: string[]; view: string; "page.page_size": number };
  headers: () => Record<string, string>;
  addressOf: (service: string, method: string, request: object) => string;
  begunEarly: (address: string) => Promise<Response | null>;
};
