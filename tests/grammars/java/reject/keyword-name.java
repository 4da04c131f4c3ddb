class int { }
