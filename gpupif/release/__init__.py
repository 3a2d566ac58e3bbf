"""Statistics that are released in place of rows: tables of counts and sums, and audits of them."""
