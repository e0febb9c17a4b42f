"""Audits the pages against the tables; exit status 1 if a number differs from its cell or has none."""

import sys
from pathlib import Path

from warplog.plan.script import job
from warplog.worklog.audit import audit

with job(snakemake.log[0]):
    sys.exit(not audit(Path(snakemake.input.pages[0]).parents[1], sys.stderr).passed)
