"""The regular expressions of JSON Schemas: parsed, and what they find as one expression for a whole text."""
