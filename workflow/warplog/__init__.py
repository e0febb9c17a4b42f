"""warplog: turns a folder of CUDA kernels into evidence (correctness, time, counters, figures)."""

__version__ = "0.1.0"
