"""Parsers for the output of compilers and profilers; each takes text or a path and returns frozen records."""
