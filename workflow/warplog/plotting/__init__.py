"""What all figures share: style, labels, layout."""
