"""Python, and the cells of notebooks."""
