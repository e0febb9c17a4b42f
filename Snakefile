"""warplog: CUDA kernels in, evidence out. `snakemake --cores 1` runs the campaign of config/config.yaml."""

from snakemake.logging import logger
from snakemake.utils import min_version

from warplog.errors import as_one_line
from warplog.gpu_lock import hold_folder
from warplog.judging import Judging
from warplog.plan import make_plan

min_version("9.20")


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


# Inert unless containers are asked for (--sdm apptainer).
container: "docker://nvidia/cuda:13.0.2-devel-ubuntu24.04"


wildcard_constraints:
    arch=r"sm_\d+",
    gpu=r"[a-z0-9-]+",
    family=r"[a-z][a-z0-9_]*",
    variant=r"[a-z][a-z0-9_]*",


with as_one_line():
    plan = make_plan(config)
    judging = Judging(plan)
logger.info(plan.message)


include: "workflow/rules/build.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/profile.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/sanitize.smk"
include: "workflow/rules/oracle.smk"
include: "workflow/rules/plot.smk"
include: "workflow/rules/track.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/judge.smk"


onstart:
    hold_folder("results")


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.track.input,
        rules.worklog.input,
