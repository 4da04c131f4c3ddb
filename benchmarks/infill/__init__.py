"""Filling in what was cut out of real files."""
