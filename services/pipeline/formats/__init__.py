"""State files of the older engine, read and written; rules stand in `domain`."""
