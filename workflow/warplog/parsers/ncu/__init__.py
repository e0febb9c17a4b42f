"""Nsight Compute: .ncu-rep reports and the pages that ncu prints."""
