"""All kinds of cheats."""

from tests.robustness.cheats import (
    attacks_by_reading,
    attacks_from_sources,
    attacks_on_packages,
    attacks_on_processes,
    attacks_on_settings,
    kinds,
)

CHEATS = (
    *kinds.CHEATS,
    *attacks_on_settings.CHEATS,
    *attacks_on_processes.CHEATS,
    *attacks_from_sources.CHEATS,
    *attacks_on_packages.CHEATS,
    *attacks_by_reading.CHEATS,
)
