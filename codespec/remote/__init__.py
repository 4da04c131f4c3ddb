"""Targets on engines elsewhere: over HTTP, with everything else of codespec in front of them."""
