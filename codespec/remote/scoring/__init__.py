"""A target on an engine that says how likely given tokens are; what it says is verified here."""
