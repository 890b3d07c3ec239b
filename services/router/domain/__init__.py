"""The router's rules of thought: what a message asks for, what an outcome leads to, which thinking step is next. Pure."""
