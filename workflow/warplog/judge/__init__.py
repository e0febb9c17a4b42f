"""Verdicts: comparisons, noise floors, histories, claims, oracle."""
