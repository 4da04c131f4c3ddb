"""A window of text that is written anew with few changes, as a draft."""
