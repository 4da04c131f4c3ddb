"""Renames that were begun at one place, and what independent programs say of the places that are offered."""
