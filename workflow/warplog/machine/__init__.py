"""The local machine: its GPU, clocks, compilers and profilers."""
