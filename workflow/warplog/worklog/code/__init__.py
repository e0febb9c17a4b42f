"""The code of a variant on its page: its kernel as a diff, its sources with line numbers, where samples fall and what
the warps wait for there."""
