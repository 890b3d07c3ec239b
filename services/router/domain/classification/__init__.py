"""Decides what a message asks for and whether to debate it first; the only code that reads sentences and weighs them."""
