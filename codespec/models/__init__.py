"""Finds, fetches and inspects model files, and chooses among them."""
