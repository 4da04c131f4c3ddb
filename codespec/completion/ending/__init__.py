"""The end of a generated text: stop rules, trimming, and the gate that judges whether the suffix still fits."""
