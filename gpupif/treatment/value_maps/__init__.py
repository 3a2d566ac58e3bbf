"""Treatments that put a value in the place of another, by what the column has, whatever else a row has."""
