"""What a page draws itself: the main path as a waterfall, and interactive charts."""
