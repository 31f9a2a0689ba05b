"""People and keys: who may ask the server for what, and how it finds out."""
