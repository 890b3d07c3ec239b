package pointsman.client;

import java.time.Duration;

/** The pauses between tries: each longer than the one before, never shorter than the server asks for. */
final class Pause {
    private static final int TRIES = 8;
    private static final Duration FIRST = Duration.ofMillis(100);
    private static final Duration LONGEST = Duration.ofSeconds(5);

    private int failures;
    private Duration next = FIRST;

    /** Waits before the next try; throws the failure when there is no sense in one. */
    void after(Failure failure) {
        boolean helps = failure.advice() == Advice.RETRY || failure.advice() == Advice.RESUME;
        if (!helps || ++failures == TRIES) {
            throw failure;
        }
        Duration asked = failure.retryAfter();
        try {
            Thread.sleep((asked.compareTo(next) > 0 ? asked : next).toMillis());
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw failure;
        }
        Duration doubled = next.multipliedBy(2);
        next = doubled.compareTo(LONGEST) < 0 ? doubled : LONGEST;
    }

    /** Begins anew: the last try brought something. */
    void reset() {
        failures = 0;
        next = FIRST;
    }
}
