"""Builds tidy tables from the records, and reads them."""
