"""What a session knows of documents: their texts, and what stands around a place in them."""
