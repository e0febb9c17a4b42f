"""Verifies what was written before: records against each other, files against their digests."""
