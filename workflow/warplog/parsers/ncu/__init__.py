"""Nsight Compute: reports and what ncu prints."""
