"""Verifies records against each other: what contradicts itself, or was not shown to be correct, is not believed."""
