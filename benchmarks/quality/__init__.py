"""Whether completions come, fit, and leave files well formed, in the words of other programs."""
