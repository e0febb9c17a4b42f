"""The one exception that a user may see: a sentence naming the file, the value and the remedy."""


class WarplogError(Exception):
    """Something outside the kernels is wrong (configuration, tool, file); its text is one readable line."""
