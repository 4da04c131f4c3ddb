"""What drafts have learnt, on the disk."""
