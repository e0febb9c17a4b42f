"""Searches the best setting of one variant on this machine's GPU."""

from pathlib import Path
from typing import Any

from warplog.core.records import read_json
from warplog.machine import toolchain
from warplog.measure import job as jobs
from warplog.measure.tuning import record as tuning_record
from warplog.measure.tuning import search as tuning
from warplog.plan.script import job


def main(values: dict[str, Any], arch: str, timer: Path, time_policy: dict[str, Any], cores: int) -> None:
    toolchain.ensure("cuda")
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    measuring = jobs.make_job(**values)
    campaign = read_json(values["campaign"], "record")["campaign"]
    search = tuning.make_search(measuring, campaign, arch, tools, timer, time_policy, cores)
    search.run()
    tuning_record.write(search)
    search.discard()


if "snakemake" in globals():
    with job(snakemake.log[0]):
        record = Path(snakemake.output.record)
        main(
            {
                "family_file": Path(snakemake.params.family_file),
                "variant": snakemake.wildcards.variant,
                "gpu": snakemake.wildcards.gpu,
                "build": record.with_name(f".{record.stem}.work") / "settings" / "record.json",
                "campaign": Path(snakemake.input.campaign),
                "settings": snakemake.params.settings,
                "record": record,
            },
            snakemake.params.arch,
            Path(snakemake.input.timer),
            snakemake.params.time,
            snakemake.threads,
        )
