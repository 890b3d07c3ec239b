"""The pure heart of the pipeline context: what a stage may say, and where the pipeline goes because of it."""
