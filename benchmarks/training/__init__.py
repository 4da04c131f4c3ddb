"""What maintainers measure of trained models, and the corpus that they were trained on."""
