"""Building, checking, timing and capturing variants on a GPU."""
