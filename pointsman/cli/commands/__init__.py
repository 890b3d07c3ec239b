"""One module for each command: its options, its help, and the calls that it makes."""
