"""Random numbers by a secret key: the same for a row or a value however a table is held or cut."""
