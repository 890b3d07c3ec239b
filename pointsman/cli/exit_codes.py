"""Exit codes of every command; `pointsman --help`, docs/operations.md and scripts rely on them."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_WAITS_FOR_PERSON = 4
EXIT_INTERRUPTED = 130
EXIT_MEANINGS = {
    0: "done",
    EXIT_FAILED: "the run or check failed",
    EXIT_USAGE: "wrong usage: nothing was done",
    EXIT_UNREACHABLE: "no control plane can be reached",
    EXIT_WAITS_FOR_PERSON: "the run waits for a person",
    EXIT_INTERRUPTED: "stopped by Ctrl-C",
}
