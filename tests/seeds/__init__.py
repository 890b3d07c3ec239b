"""The rules of the five specifications (seeds), each with the tests that show it."""
