"""What engines elsewhere cost: requests, and the way there and back."""
