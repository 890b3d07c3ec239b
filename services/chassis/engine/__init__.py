"""The one way to change state, and what follows from a commit: journal, outbox, effects, timers, leases, retention, audit.

Owns: `ledger` (load, decide, write journal + state + outbox + answer in one transaction), `state_cache`, `journal` (reading and
following), `outbox` (effects and timers as rows), `effects` (delivery), `leases` (jobs that one replica does), `retention`,
`audit` (proves numbering, digests, fold, idempotency, outbox).
Invariant: a command changes state once; an effect is delivered at least once, in order for each entity, and applied once.
Never: knows a context, or talks to a peer itself.
"""
