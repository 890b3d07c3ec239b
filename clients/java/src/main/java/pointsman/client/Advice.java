package pointsman.client;

/** What a caller should do about a refusal. */
public enum Advice {
    /** Make the same call with the same request_id. */
    RETRY,
    /** Open the stream again after the last seq. */
    RESUME,
    /** Look at the state again, then decide anew. */
    LOOK,
    /** Drop the work: it is somebody else's now. */
    DROP,
    /** Fix the request: as it is, it can never succeed. */
    FIX,
    /** Stop: credentials, configuration or the server have to change. */
    STOP;

    /** A reason that this client does not know is judged by its code. */
    static Advice about(io.grpc.Status.Code code, String reason) {
        return switch (reason) {
            case "WATCHER_TOO_SLOW" -> RESUME;
            case "LEASE_LOST", "NOT_YOUR_DELEGATION" -> DROP;
            case "OVERRIDE_REFUSED", "NOT_ADDRESSED" -> FIX;
            case "UNKNOWN_VERSION" -> STOP;
            default -> switch (code) {
                case UNAVAILABLE, RESOURCE_EXHAUSTED, ABORTED, DEADLINE_EXCEEDED -> RETRY;
                case FAILED_PRECONDITION, NOT_FOUND -> LOOK;
                case INVALID_ARGUMENT, ALREADY_EXISTS -> FIX;
                default -> STOP;
            };
        };
    }
}
