"""Verbs on commits: `warplog gate` judges a change, `warplog bisect` finds one, and packs carry builds elsewhere."""
