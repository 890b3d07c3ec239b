"""Router: decides by rules, before any model is called, who takes a message and whether to debate it first.

Owns routing decisions (one for each message, explained and stored), each project's policy (the hard_routing switch and its own
rules), the outcomes of tasks (failures in a row, rejections, the same error elsewhere) and the thinking workflow's next step.

Invariants: the same text under the same rule set always gives the same decision, in time linear in its length; a
STRONG decision is overridden only where hard routing is off; a task is debated once in a session; a stored decision
never changes; the values of a thinking snapshot, which may be secrets, are never stored.

Never: calls a model or another service, opens a path that a message names, or guesses at rules it cannot read.
"""
