"""Landing: the way of a run's accepted work into a branch, as a machine of its own.

Owns: entries (9 states, one table), each with its work, its candidate and its linked runs. A queue is the entries of one
(project, repository, remote, target branch) in order of priority and arrival; it has no state of its own but a lease.
Invariants: what lands is the commit that was proven, over the tip that it was proven on; an entry lands at most once; a
live entry waits for the integrator, for a linked run or for a named person; at most two linked runs,
then one of a resolver if one plays, then a person.
Never: reads git, knows a forge, deletes work, changes the run that made the work (COMPLETE stays terminal), or takes
text of a forge for more than untrusted words.
"""
