"""What answers the client: a file for each method, or family of methods, of the protocol."""
