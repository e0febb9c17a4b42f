"""What the stages hand over: one typed, frozen record per stage, defined once; `door` is the way in and out."""
