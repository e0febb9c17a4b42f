"""Lowest layer: records, schemas, paths, numbers, text and processes; independent of kernels and GPUs."""
