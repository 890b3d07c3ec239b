"""Exit codes of every command; docs/operations.md and scripts rely on them."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_WAITS_FOR_PERSON = 4
EXIT_INTERRUPTED = 130
