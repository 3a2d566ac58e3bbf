"""The search for the least treatment that reaches criteria, and advice on what single changes bring."""
