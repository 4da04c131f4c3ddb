"""What grammars cost, beside other engines."""
