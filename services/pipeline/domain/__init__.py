"""The rules of pipelines: no clock, no database, no wire, no foreign formats."""
