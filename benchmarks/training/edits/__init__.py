"""Training of the embedded next-edit model: edits made on real files, edits between versions of packages."""
