"""Nsight Systems: reports, SQLite exports and the output of `nsys stats`."""
