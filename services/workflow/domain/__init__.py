"""The rules of workflows: no clock, no database, no wire, no foreign formats."""
