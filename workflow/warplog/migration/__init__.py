"""Carries records and tables of the release before to the present format; the next release drops this package."""

from warplog.migration.records import migrated

__all__ = ["migrated"]
