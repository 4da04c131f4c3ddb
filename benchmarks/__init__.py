"""What measures codespec, beside other programs too: ``python -m benchmarks``; not part of the package."""
