"""``python -m benchmarks edit-speed``: how fast a text is written that repeats another one with few changes."""
