"""One client's connection: standard input and output, TCP or a web socket, and what arrives over it."""
