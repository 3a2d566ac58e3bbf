"""What `score` returns: scores, summaries, and what is drawn of them."""
