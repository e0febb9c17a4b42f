"""Conclusions from measurements as values: what the same code shows, verdicts, and the numbers that claims use."""
