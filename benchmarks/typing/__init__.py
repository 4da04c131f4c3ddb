"""Files typed in real editors, as a person would."""
