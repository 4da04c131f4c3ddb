"""The child of ``python_compiler``: compiles the texts that come in, a line of JSON each, and runs nothing of them.

It is started by its file's name, without the package and its imports.
"""

import json
import sys

MEMORY = 1 << 30
"""Bytes that it may take."""


def limit() -> None:
    """Keep a text from filling the memory, where the system has limits, and from leaving a copy of it on the disk."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for which, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(which, (most, most))
        except (OSError, ValueError):  # the system has no such limit, or a lower one
            continue


def answer(text: str, flags: int) -> "list[object] | None":
    """What ``compile`` says of a text: the message, and line and column of where it begins and ends."""
    try:
        compile(text, "text", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        place = (error.lineno, error.offset, getattr(error, "end_lineno", 0), getattr(error, "end_offset", 0))
        return [error.msg, *(each or 0 for each in place)]
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return [str(error) or type(error).__name__, 0, 0, 0, 0]
    return None


def main() -> None:
    """Answer until nobody asks any more."""
    limit()
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(json.dumps(answer(*json.loads(line))).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
