"""``python -m benchmarks edit``: what is offered as the next edit, and whether it is right and does no harm."""
