"""The orchestrator: the life of a run, its agents and its evidence.

Owns: runs (26 states, one table of transitions), assignments with leases, handed-in artifacts, deliveries.
Invariants: a run's state is the fold of its journal; an assignment has at most one live lease, and no answer under an
older epoch is taken; nothing is accepted without evidence; every wait has a timer or a named person.
Never: opens a path, runs a command, trusts a verdict that its stage, role, lease and round do not allow, or lets
anybody name an event of the machine from outside.
"""
