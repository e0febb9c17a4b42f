"""Families of kernels: contract, variants, claims, search spaces."""
