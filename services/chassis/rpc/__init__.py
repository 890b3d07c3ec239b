"""gRPC in and out: server, admission, validation, status, authentication; clients with deadlines, retries and fresh credentials.

Owns: `server` (one place for limits, validation, caller, errors, drain), `admission` (limits before a request is read),
`validation` (bytes to a valid request), `status` (errors as google.rpc.Status), `authentication`, `grants` and `tokens`,
`loopback` (the credentials of one machine), `client` (calls to peers), `in_process` (the same inside one process),
`file_watcher` (files that change), `paging`.
Invariant: only documented codes leave; no exception text reaches a client; an unauthenticated caller reaches no handler.
Never: holds state of a context.
"""
