"""One target with its draft models and its prompt cache. Knows tokens, no documents."""
