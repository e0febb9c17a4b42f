"""What a page draws itself: the main path as a waterfall, the tiles of a kernel, and interactive charts."""
