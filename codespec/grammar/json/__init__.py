"""The JSON Schema front end: schemas rewritten for llguidance, and states that enforce keywords which it lacks."""
