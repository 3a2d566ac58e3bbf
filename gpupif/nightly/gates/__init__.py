"""What a night measures, and the gates that judge it."""
