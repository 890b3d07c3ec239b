"""What agents use: tokens and cost from their own output, prices, and the limits of their models' providers.

Everything that differs between agents is data: `outputs.toml`, `prices.toml`, `limits.toml`.
"""
