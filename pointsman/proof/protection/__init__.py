"""Protection: which files judge the work, and so come from the base when a delivery is proven.

The table is data (`protected.toml`), with a reason for every row. Manifests that hold both test settings and
dependencies are split by key: settings come from the base, dependencies from the delivery. Rust sources are split into
their code and their test modules.
"""
