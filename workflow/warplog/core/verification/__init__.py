"""Verifies files against their digests."""
