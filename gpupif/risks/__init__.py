"""Risk of re-identification: of equivalence classes by their sizes, of the population behind a sample, before data."""
