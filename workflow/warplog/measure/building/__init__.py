"""Compiles a variant (nvcc, or a Python module that is loaded) and loads what was built."""
