"""Tidy tables from the records, and how they are read again."""
