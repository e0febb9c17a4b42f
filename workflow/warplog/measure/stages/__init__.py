"""The stages that measure the variants of a family: what they share, and what each does."""
