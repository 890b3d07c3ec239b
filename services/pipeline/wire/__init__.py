"""Protobuf into commands, answers into protobuf. Pure: no clock, no store."""
