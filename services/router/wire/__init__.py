"""Converts between protobuf messages and domain values."""
