"""Tables that are the result of a query on a database, read in Arrow batches."""
