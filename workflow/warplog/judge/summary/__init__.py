"""What a run found, in a few typed rows that the end of the run, results/summary.md and results/index.html show."""
