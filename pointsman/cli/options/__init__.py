"""What people type: values of options and files, read with clear errors."""
