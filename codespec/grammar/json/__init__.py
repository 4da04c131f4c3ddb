"""JSON Schemas to what llguidance compiles, and what it lacks around its states."""
