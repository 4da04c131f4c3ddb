"""Training of the target and of its per-language drafts (needs ``pip install codespec[train]``)."""
