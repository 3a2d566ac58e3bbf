"""What changed from one night to another."""
