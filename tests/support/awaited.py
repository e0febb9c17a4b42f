"""What is newer than the recorded campaign that serves without a GPU: nothing, after the next recording."""

EDITED: set[tuple[str, str]] = set()
NEW: set[tuple[str, str]] = set()
