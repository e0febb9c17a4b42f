"""Figures that come with a verdict."""
