"""Landing: brings accepted work into a branch, in the worker that is called the integrator.

Owns the target branch as git sees it, the chain of candidates over its tip, the proof of the result, batches that are
bisected when they fail, commit messages, forges and pull requests, and the prediction of conflicts.

Invariants: the target moves by fast-forward only, to a commit whose tree was proven on the tip that it replaces; the
candidate is reported before anything is pushed; a remote or branch that the project does not name is not touched; no
branch that is not ours is pushed with force. Text of a forge is untrusted.

Never decides what becomes of an entry (the orchestrator's table does), never deletes a branch, never gives a forge's
credential to a command, a log or the control plane.
"""
