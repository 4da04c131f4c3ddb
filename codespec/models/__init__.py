"""Where models are found and what is known of them."""
