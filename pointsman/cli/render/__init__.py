"""How answers, runs and transitions are printed: for people, or as JSON."""
