"""Reduces one variant's ncu and nsys reports to named metrics."""

from pathlib import Path

from warplog import extract
from warplog.job import job


def main(
    captures: dict[str, Path], cases: dict[str, tuple[str, ...]], output: Path, sources: list[Path]
) -> None:
    extract.extract_record(**captures, **cases, output=output, sources=sources)


if "snakemake" in globals():
    with job(snakemake.log[0]):
        names = {
            "ncu_record": "ncu",
            "ncu_report": "ncu_report",
            "nsys_record": "nsys",
            "nsys_report": "nsys_report",
        }
        main(
            {name: Path(snakemake.input[key]) for name, key in names.items()},
            {name: tuple(snakemake.params[name]) for name in ("cases", "nsys_cases")},
            Path(snakemake.output[0]),
            [Path(path) for path in snakemake.input.sources],
        )
