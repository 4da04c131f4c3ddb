"""What stays private: secrets by their names and texts, ignored files, and what may be written to the disk."""
