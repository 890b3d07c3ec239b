"""Protobuf to domain and back: runs, agents' work, and the other services' answers. Pure."""
