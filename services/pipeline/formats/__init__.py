"""Readers and writers of foreign formats: the route marker in transcripts, state files of the older engine."""
