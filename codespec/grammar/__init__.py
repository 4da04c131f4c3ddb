"""Grammars: front ends, lowering to llguidance, and the states that generation walks through."""
