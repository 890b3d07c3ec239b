"""Values and rules that every other room uses: state machines, errors, caller, clock, ids, codec, crash points, settings.

Owns: `machine` (Machine, Event, Decision, Effect, SetTimer), `errors` (Refusal, Reason), `caller` (Caller), `clock` and `ids`
(the only readers of time and randomness), `codec` (values as JSON, the digest chain), `crash` (named points for fault tests),
`config` (settings from the environment), `supervision` (background loops that restart), `garbage_collection`.
Invariant: imports nothing from the other rooms; `machine` and `errors` are pure.
Never: opens a connection, a file of a store, or a port.
"""
