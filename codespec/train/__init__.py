"""Training of the target and of its per-language drafts (needs the extra ``train``)."""

import os

# As in codespec/llama/runtime.py, and before torch loads libgomp: unbounded spinning stalls on a busy machine.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
