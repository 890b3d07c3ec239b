"""The router's pure rules: what a message asks for, what an outcome leads to, which thinking step is next."""
