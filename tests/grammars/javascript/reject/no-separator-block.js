{ a b }
