"""Reads sentences: what a text asks for, in English and other languages. Independent of debates, policies and stores."""
