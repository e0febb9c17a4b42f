"""Figures of a whole campaign."""
