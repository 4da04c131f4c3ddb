"""``python -m codespec``."""

from codespec.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
