"""Searches the best parameters of one variant on this machine's GPU and writes them beside the kernel."""

from pathlib import Path
from typing import Any

from warplog.machine import toolchain
from warplog.measure import job as jobs
from warplog.measure.tuning import record as tuning_record
from warplog.measure.tuning import search as tuning
from warplog.plan.script import job
from warplog.records import door
from warplog.records.settings import TimeSettings, TuneSettings


def main(values: dict[str, Any], arch: str, timer: Path, time_policy: object, cores: int) -> None:
    toolchain.ensure("cuda")
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    (measuring,) = jobs.make_jobs(TuneSettings, **values)
    policy = door.decode(time_policy, TimeSettings, "settings")
    search = tuning.make_search(measuring, measuring.campaign, arch, tools, timer, policy, cores)
    search.run()
    tuning_record.write(search)
    search.discard()


if "snakemake" in globals():
    with job(snakemake.log[0]):
        record, names = Path(snakemake.output.record), snakemake.wildcards
        scratch = record.with_name(f".{names.family}.{names.variant}.work")
        values = snakemake.params.job
        main(
            {
                "family_file": Path(values["family_file"]),
                "variants": [names.variant],
                "gpu": names.gpu,
                "builds": [scratch / "settings" / "record.json"],
                "campaign": Path(snakemake.input.campaign),
                "settings": values["settings"],
                "record": record,
            },
            values["arch"],
            Path(snakemake.input.timer),
            values["time"],
            snakemake.threads,
        )
