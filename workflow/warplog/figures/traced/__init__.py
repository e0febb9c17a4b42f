"""Figures of traced accesses: which addresses, elements and tiles lanes, threads and blocks touch."""
