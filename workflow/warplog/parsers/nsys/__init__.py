"""Nsight Systems: reports, exports and what `nsys stats` prints."""
