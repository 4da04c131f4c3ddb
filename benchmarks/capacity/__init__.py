"""How far `python -m benchmarks plan` is from a real engine."""
