"""The chassis tables' migrations; each store runs them before its own."""
