"""Router: who should do it, and is it safe to start; decided by rules before any model is called.

Owns decisions (one for each message, explained and stored), each project's policy (the hard_routing switch and its own
rules), the outcomes of tasks (failures in a row, rejections, the same error elsewhere) and the thinking workflow's next step.

Invariants: the same text under the same rule set always gives the same decision, in time linear in its length; a
STRONG decision is overridden only where hard routing is off; a task is debated once in a session; a stored decision
never changes; a secret that was looked at is never kept.

Never: calls a model or another service, opens a path that a message names, or guesses at rules it cannot read.
"""
