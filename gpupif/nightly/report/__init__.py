"""Who is told what a run came to: the terminal, files for other programs, and webhooks.

All are drawn of the document that `RunOutcome.to_dict` makes, so that none says what another may not.
"""
