"""Rules to lexemes and the text that llguidance compiles; the language never changes."""
