"""How far `codespec plan` is from a real engine."""
