"""Figures that are drawn only for the families that list them."""
