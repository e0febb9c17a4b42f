"""The campaign in MLflow."""
