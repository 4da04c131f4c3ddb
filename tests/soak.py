"""``python -m tests.soak``: see ``tests/lsp/soak.py``."""

from .lsp.soak import main

if __name__ == "__main__":
    raise SystemExit(main())
