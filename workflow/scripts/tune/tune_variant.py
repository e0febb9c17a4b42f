"""Searches the best parameters of one variant on this machine's GPU and writes them beside the kernel."""

from pathlib import Path

from warplog.catalog.family import load_family
from warplog.machine import toolchain
from warplog.measure import job as jobs
from warplog.measure.family_board import board_of
from warplog.measure.tuning import record as tuning_record
from warplog.measure.tuning import search as tuning
from warplog.plan.jobs import TuneJob
from warplog.plan.script import job, parameters


def main(
    params: TuneJob, variant: str, gpu: str, campaign: Path, timer: Path, record: Path, cores: int
) -> None:
    toolchain.ensure("cuda")
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    family = load_family(Path(params.family_file))
    scratch = record.with_name(f".{family.name}.{variant}.work")
    (measuring,) = jobs.make_jobs(
        family=family,
        variants=[variant],
        gpu=board_of(family.name, gpu, campaign.parents[1]),
        builds=[scratch / "settings" / "record.json"],
        campaign=campaign,
        settings=params.settings,
        record=record,
    )
    search = tuning.make_search(measuring, measuring.campaign, params.arch, tools, timer, params.time, cores)
    search.run()
    tuning_record.write(search)
    search.discard()


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main(
            parameters(snakemake, TuneJob),
            snakemake.wildcards.variant,
            snakemake.wildcards.gpu,
            Path(snakemake.input.campaign),
            Path(snakemake.input.timer),
            Path(snakemake.output.record),
            snakemake.threads,
        )
