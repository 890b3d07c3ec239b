"""Who is who on one machine: the secrets of the roles, the tokens minted from them, and the channels that show them.

Owns: `folder` (the files below `<data>/credentials`: made once, read only when nobody else can), `tokens` (a bearer token
of a role, or of one agent of a role), `certificate` (the certificate of TCP on loopback, and the authority that clients
pin), `channel` (a channel that shows a token), `location` (where the control plane of a data directory listens).
Invariants: a secret never leaves its file but into a signature; a token is sent only over a Unix socket in a private
folder or over TLS to the pinned certificate; a process without the file of a role cannot act in that role.
Never: says what a role may do; that is the server's table.
"""
