"""The pure rules of workflows: no clock, no database, no wire."""
