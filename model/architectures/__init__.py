"""The architectures that are trained, each in one file."""
