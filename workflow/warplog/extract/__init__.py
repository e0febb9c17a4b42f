"""Reports of both profilers reduced to metrics, hot lines and a timeline."""
