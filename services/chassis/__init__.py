"""What every service shares and none owns: the one way to change state, and the edges around it.

How a context is built on it:
  domain      `machine` (Machine, Event, Decision, Effect, SetTimer) and `refusals` (Refusal, Reason): pure.
  store       `store.Store` over `db.Database`; one `ledger.Ledger` per kind of entity: `await ledger.submit(caller, command)`;
              `ledger.Children` for child rows; `journal.Journal` for Watch and lists; `store.write(job)` for rows that
              are no transitions; `database.read(query)` for everything that only reads.
  servicer    methods `(request, caller)`; `server` has validated the request and named the caller before.
  loops       `delivery.EffectRunner`, `delivery.TimerRunner`, each `run` is a loop of the service; `lease.Leases`.
  __main__    `build(…) -> service.Service`; `service.start` binds, migrates, serves and starts the loops.
It never knows a context, never holds state outside the database, and reads clock and randomness in one place each.
"""
