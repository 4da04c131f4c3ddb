"""What a command's exit code says."""

DONE, ANSWER_IS_NO, BAD_INPUT, INTERNAL = 0, 1, 2, 3
