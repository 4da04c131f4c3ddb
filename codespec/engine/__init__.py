"""The models of one target: what decodes, what drafts, what is kept of prompts. Knows no document."""
