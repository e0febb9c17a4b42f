"""Decides what a campaign runs, and provides the inputs and parameters of the rules."""
