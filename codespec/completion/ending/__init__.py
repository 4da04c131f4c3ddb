"""Where a text ends: stop rules, tidying, and the gate that asks whether what follows the cursor still fits."""
