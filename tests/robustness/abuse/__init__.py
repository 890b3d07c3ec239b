"""Bad input on purpose: every RPC, every field, over gRPC and HTTP, against real services in a process of their own.

shapes     requests from the descriptors: a valid one, and what can be wrong with each of its fields
http       the same idea as JSON, for the gateway
credentials what callers show: tokens that count, and everything that does not
leases     keys of leases that are not quite right
target     the services, their memory and what their stores hold
campaign   sends it all, and judges: only documented codes, nothing changed by what was refused, memory flat
"""
