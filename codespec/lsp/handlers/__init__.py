"""The handlers of the client's messages: a file for each method, or family of methods, of the protocol."""
