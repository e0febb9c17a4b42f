"""Readers of what compilers and profilers write; each takes text or a path and returns frozen records."""
