"""Reduces the reports of both profilers to metrics, hot source lines and a trace."""
