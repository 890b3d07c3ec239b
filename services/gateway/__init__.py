"""The gateway: the same contract over HTTP/JSON and server-sent events, and the web console.

Owns: nothing. Every answer comes from a service, every route from the protos' descriptors.
Invariants: each RPC is reachable under one path derived from its name; a request is refused with the same reasons and
field paths as over gRPC; a stream resumes after the id that the client saw last; nothing is answered to a foreign host
name, and nothing is changed for a foreign origin.
Never: keeps state, imports another context, serves beyond loopback without TLS and authentication, or runs inline script.
"""
