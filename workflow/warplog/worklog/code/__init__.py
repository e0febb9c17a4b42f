"""The code of a variant on its page: its kernel as a diff, its sources with line numbers, and where samples fall."""
