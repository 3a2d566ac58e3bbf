"""The disclosure risk of identities and sensitive attributes: in a table, in its population, before there is data."""
