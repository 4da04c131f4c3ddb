"""Speed of decoding, by source of drafts, and beside llama.cpp's own speculation."""
