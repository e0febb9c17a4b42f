"""Kernel families: contract, variants, claims and search spaces."""
