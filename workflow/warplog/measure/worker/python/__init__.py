"""Variants in Python languages: their arrays, their launcher, their compilation."""
