"""Lark grammars to the one text that llguidance reads."""
