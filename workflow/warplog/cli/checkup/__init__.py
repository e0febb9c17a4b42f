"""Checks of `warplog doctor`: the machine (host), Python packages, programs and libraries (tools), the GPU (gpu)."""
