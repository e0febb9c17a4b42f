"""Rows of the tables of traced accesses."""
