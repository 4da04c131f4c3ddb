"""One client's connection, and what arrives over it."""
