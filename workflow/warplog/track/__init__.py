"""Log a campaign to MLflow."""
