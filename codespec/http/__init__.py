"""HTTP interfaces that other clients speak: OpenAI's, llama-server's, Mistral's."""
