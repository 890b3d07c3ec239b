"""Input: values of options and files, parsed with clear errors."""
