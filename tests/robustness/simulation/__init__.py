"""The four services under a seed: real machines, ledgers, deliveries and servicers; fake time, network and deaths.

world      the event loop whose time only moves when nobody has anything to do, and the seeded source of all chance
scope      how much happens in a seed: whole runs, runs that are cut short, or no run at all
session    the stores' statements on the driver's own cursor
storage    the stores in memory, and a writer that commits in the loop's time and may die at every named crash point
network    calls between processes: late, twice, lost on the way there or back
processes  the services as processes that are killed and started again on what they had committed
actors     who uses them: somebody who submits, a person who answers, agents that are slow, wrong, silent or twice there
direct     who uses workflow, pipeline and router without a run
told       what all of them were told
checks     what has to hold when everything has come to rest
bugs       planted bugs, each of which has to be found
Everything a seed does follows from its number: `python -m tests.robustness.simulation --seed N` does it again.
"""
