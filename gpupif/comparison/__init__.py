"""A table before and after it was treated: risk and utility side by side."""
