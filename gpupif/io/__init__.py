"""Files: tables read whole or in streams, scores and checkpoints written."""
