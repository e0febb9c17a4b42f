"""Records of the stages that run only if they are asked for: accesses, sanitize, timeline, tune."""
