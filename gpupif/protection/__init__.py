"""The search for the least treatment that reaches targets, and advice on what single changes bring."""
