"""This machine: its GPU, clocks, compilers and profilers."""
