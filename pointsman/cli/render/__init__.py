"""Output: answers, runs and transitions as text or as JSON."""
