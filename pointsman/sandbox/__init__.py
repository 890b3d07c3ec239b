"""Runs one untrusted command, an agent's or a proof's, at the strongest isolation that the machine offers.

It owns what a command sees (files, network, processes, variables), its limits, and the probe that shows what holds.
Invariants: a command writes only where its spec says; the spec travels by pipe, never in arguments; nothing of the
worker's environment is inherited; no process outlives its command; a level is what a probe inside the sandbox showed
on this machine, not what is installed.
Levels: `none` (macOS, old kernels), `landlock`, `namespaces` (bubblewrap), `container` (podman or docker, by setting).
It never judges what a command did, knows no assignment, repository or control plane, and reaches no service.
"""

from pointsman.sandbox.environment import clean_environment, proof_environment, toolchain_folders
from pointsman.sandbox.level import Level, TooWeak, UnknownLevel, level_named, max_level
from pointsman.sandbox.probe import ProbeReport, available_level, probe, require, run, supports_grades
from pointsman.sandbox.services import failed_service
from pointsman.sandbox.spec import Clock, CommandResult, EndedBy, Limits, SandboxSpec, Service

__all__ = [
    "Clock",
    "CommandResult",
    "EndedBy",
    "Level",
    "Limits",
    "ProbeReport",
    "SandboxSpec",
    "Service",
    "TooWeak",
    "UnknownLevel",
    "available_level",
    "clean_environment",
    "failed_service",
    "level_named",
    "max_level",
    "probe",
    "proof_environment",
    "require",
    "run",
    "supports_grades",
    "toolchain_folders",
]
