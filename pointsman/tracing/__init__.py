"""A run's trace as people look at it, made from the journals."""
