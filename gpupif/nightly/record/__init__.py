"""What is on record of nights: runs, kept scores, who may write, what is removed, whether all is whole."""
