"""Sentences: what a text asks for, in English and other languages; knows nothing of debates, policies or stores."""
