"""The remarks of version 1."""
