"""The APIs that other clients speak: the fields of their requests, and their answers."""
