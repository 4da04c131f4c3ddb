"""Training an adapter that teaches a model to fill in the middle: examples, LoRA, its GGUF file."""
