"""What all services share: the one way to change state, storage, gRPC, telemetry.

How a context is built on it:
  domain      `core.machine` (Machine, Event, Decision, Effect, SetTimer) and `core.errors` (Refusal, Reason): pure.
  store       `storage.Store` over `storage.Database`; one `engine.Ledger` per kind of entity: `await ledger.submit(caller, command)`;
              `engine.changes.Children` for child rows; `engine.Journal` for Watch and lists; `store.write(job)` for rows that
              are no transitions; `database.read(query)` for everything that only reads.
  servicer    methods `(request, caller)`; `rpc.server` has validated the request and authenticated the caller.
  loops       `engine` EffectRunner and TimerRunner, each `run` is a loop of the service; Leases.
  __main__    `build(…) -> runtime.Service`; `runtime.start` binds, migrates, serves and starts the loops.
It never knows a context, never holds state outside the database, and reads clock and randomness in one place each.
"""
