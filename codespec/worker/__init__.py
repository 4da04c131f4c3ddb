"""The one thread that owns the models: requests wait for it, and the latest of a document wins."""
