"""The router's messages on the wire, to and from its domain."""
