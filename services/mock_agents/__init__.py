"""Mock agents: ordinary agents behind the same interface, whose behaviour is set from outside; for full mock mode and tests."""
