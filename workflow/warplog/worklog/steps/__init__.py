"""What a step of the ladder changes besides its factors and warp states, and whether it meets its expectation."""
