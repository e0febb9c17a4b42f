"""Figures of comparisons and histories."""
