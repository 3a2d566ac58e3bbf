"""Gates, and the findings of a run that they judge."""
