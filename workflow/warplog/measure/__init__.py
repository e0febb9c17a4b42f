"""Builds, checks, times, captures, sanitizes and tunes variants on a GPU."""
