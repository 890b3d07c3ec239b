"""Schedules: messages that become runs at the times of a calendar, as a machine of their own.

Owns: schedules (3 states), each with its calendar, its order, its next time and what became of its last times.
Invariants: a time starts at most one run, whose id derives from schedule and time; an active schedule has one timer, for
its next time; a time that starts no run is counted with the reason (missed, overlapping, refused).
Never: starts a run itself (an effect does), reads git or a clock, or changes a run.
"""
