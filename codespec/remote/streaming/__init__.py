"""A target on an engine that writes texts by itself, which are followed as they come."""
