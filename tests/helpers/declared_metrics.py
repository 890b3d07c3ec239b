"""Every metric of every service: importing this module declares those of the contexts too."""

import importlib
from pathlib import Path

from pointsman.services.chassis.telemetry.metrics import UNITS

ROOT = Path(__file__).resolve().parents[2]

MODULES = [importlib.import_module("pointsman.services.chassis.telemetry.metrics")] + [
    importlib.import_module(f"pointsman.services.{path.parent.name}.metrics")
    for path in sorted((ROOT / "services").glob("*/metrics.py"))
]
DECLARED = tuple(UNITS)
