"""What the model sees of a document and of other files."""
