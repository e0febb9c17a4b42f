"""The command `warplog`."""
