"""Speculative decoding over token ids: draft, verify, accept, roll back."""
