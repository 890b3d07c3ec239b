"""Proof: what a delivered tree is worth, found by running its tests with an oracle that its author could not touch.

Owns the table of protected files (tests, fixtures, runner configuration, CI), manifests split by key, adapters that
read one result per test, the comparison of base and delivery, the two proofs, grades and static signals.

Invariants: a test counts only by its own result in a report that is complete; a process that ends without its report
has not passed; none executed is no proof. Protected files of the base judge the delivery, never only the author's.

Never decides by what an author says, never runs a command outside a sandbox, never talks to a control plane: the
verifier and `pointsman proof` stand above it.
"""
