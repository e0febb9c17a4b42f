"""What a campaign runs, and the hinge to the rules of the workflow."""
