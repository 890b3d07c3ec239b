// What a refused call tells, and what to do about it.
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.js";

/** RETRY with the same request_id; RESUME after the last seq; LOOK at the state again; DROP the work; FIX the request; STOP. */
export type Advice = "RETRY" | "RESUME" | "LOOK" | "DROP" | "FIX" | "STOP";

const ADVICE_BY_REASON: Record<string, Advice> = {
  WATCHER_TOO_SLOW: "RESUME",
  LEASE_LOST: "DROP",
  NOT_YOUR_DELEGATION: "DROP",
  OVERRIDE_REFUSED: "FIX",
  NOT_ADDRESSED: "FIX",
  UNKNOWN_VERSION: "STOP",
};

const ADVICE_BY_CODE: Partial<Record<Code, Advice>> = {
  [Code.Unavailable]: "RETRY",
  [Code.ResourceExhausted]: "RETRY",
  [Code.Aborted]: "RETRY",
  [Code.DeadlineExceeded]: "RETRY",
  [Code.FailedPrecondition]: "LOOK",
  [Code.NotFound]: "LOOK",
  [Code.InvalidArgument]: "FIX",
  [Code.AlreadyExists]: "FIX",
};

/** What to do about a refusal; a reason that this client does not know is judged by its code. */
export function adviceFor(code: Code, reason: string): Advice {
  return ADVICE_BY_REASON[reason] ?? ADVICE_BY_CODE[code] ?? "STOP";
}

/** A refused call, as common.proto describes it. */
export class Failure extends Error {
  constructor(
    readonly code: Code,
    /** The name of an ErrorReason without its prefix; empty when the call did not arrive. */
    readonly reason: string,
    readonly metadata: Record<string, string>,
    readonly fields: string[],
    readonly retryAfterMs: number,
    message: string,
  ) {
    super(message);
  }

  get advice(): Advice {
    return adviceFor(this.code, this.reason);
  }

  /** Reads the typed details of whatever a call threw. */
  static from(thrown: unknown): Failure {
    const error = ConnectError.from(thrown);
    const [info] = error.findDetails(ErrorInfoSchema);
    const [bad] = error.findDetails(BadRequestSchema);
    const [retry] = error.findDetails(RetryInfoSchema);
    const delay = retry?.retryDelay;
    const retryAfterMs = delay ? Number(delay.seconds) * 1000 + delay.nanos / 1e6 : 0;
    const fields = bad?.fieldViolations.map((violation) => violation.field) ?? [];
    return new Failure(error.code, info?.reason ?? "", info?.metadata ?? {}, fields, retryAfterMs, error.rawMessage);
  }
}
