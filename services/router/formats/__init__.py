"""The daily log of routing decisions in its own format; rules stand in `domain`."""
