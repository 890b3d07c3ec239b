"""Mock agents for mock mode and tests: ordinary agents whose behaviour is set by a policy."""
