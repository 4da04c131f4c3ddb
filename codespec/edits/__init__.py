"""Next edits: what the change just made asks for elsewhere."""
