"""From a document and a position to a completion that fits there."""
