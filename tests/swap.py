"""``python -m tests.swap``: see ``tests/lsp/swap.py``."""

from .lsp.swap import main

if __name__ == "__main__":
    raise SystemExit(main())
