"""More than can be done: what is turned away, what passes first, and how soon all is as before."""
