"""The documents of a session: their texts, and the context that prompts show with them."""
