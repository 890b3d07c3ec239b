"""Real parts for tests: databases, a small context of our own, servers, and waiting without sleeping."""
