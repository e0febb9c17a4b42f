"""How well does the model of mechanisms predict the steps of a campaign? Prints tables, writes a row per step.

    python tests/benchmarks/mechanism_study.py results/tables --output steps.csv
    python tests/benchmarks/mechanism_study.py results/tables --write

Power and error are those of calibration.yaml, unless they are given; `--write` fits both to the planted pairs that are
`fitted`, and writes them there.
"""

import argparse
import csv
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
from msgspec import structs, yaml

from warplog.analysis.explanation import sources_of
from warplog.analysis.mechanisms import campaign, ceilings, model, steps, units
from warplog.analysis.mechanisms.campaign import Campaign
from warplog.analysis.mechanisms.forecasts import MENDS
from warplog.analysis.mechanisms.model import Calibration
from warplog.analysis.mechanisms.work import Launch, Work
from warplog.analysis.verdicts import FASTER, SLOWER, judge
from warplog.catalog import family as catalog
from warplog.core.parsing import parse_yaml
from warplog.records import door
from warplog.tables.conclusions import Forecast, Reason
from warplog.tables.files import as_rows, read_table

KERNELS = Path(__file__).parents[2] / "kernels"
LEAST_GAIN = 0.15  # of the slower time
LITTLE = 0.1  # of what could be mended
HEADER = """\
# What is fitted for the model of mechanisms (model.py says what the values mean), by
# `python tests/benchmarks/mechanism_study.py results/tables --write`, to the planted pairs that are `fitted`.
"""
POWERS = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
ROOFLINE = (*units.OF_SM, *units.OF_GPU)
Form = Callable[[Launch, Launch, float], float]  # work of parent and child, the parent's time: the child's


@dataclass(frozen=True)
class Step:
    """A step with what is predicted of it and what its author states as its cause."""

    reason: Reason
    parent_us: float
    us: float
    differs: bool
    causes: tuple[str, ...]
    planted: str
    decoy: str
    by_form: Mapping[str, float]

    @property
    def gain(self) -> float:
        """The measured gain or loss as a share of the slower time."""
        return abs(self.reason.measured_us) / max(self.parent_us, self.us)

    @property
    def error(self) -> float:
        """The error of the predicted saving as a share of the measured one."""
        return abs(self.reason.predicted_us / self.reason.measured_us - 1)


def forms(gpu: ceilings.Gpu, power: float) -> dict[str, Form]:
    """Returns the forms that are compared, by what they are called."""

    def form(names: Sequence[str] | None, power: float, carried: bool) -> Form:
        def of_kernel(work: Work) -> float:
            kept = [us for unit, us in units.unit_times(work, gpu).items() if names is None or unit in names]
            if math.isinf(power):
                return max(kept, default=0.0)
            return sum(us**power for us in kept) ** (1 / power)

        def of_launch(launch: Launch) -> float:
            return sum(map(of_kernel, launch))

        def child(before: Launch, after: Launch, us: float) -> float:
            start = gpu.us(model.LAUNCH_US)
            reached = (us - start * len(before)) / of_launch(before) if carried else 1.0
            return start * len(after) + reached * of_launch(after)

        return child

    return {
        "maximum over units at their ceilings": form(ROOFLINE, math.inf, False),
        "maximum, the parent's efficiency carried over": form(ROOFLINE, math.inf, True),
        f"p-norm, p = {power:g}, carried over": form(ROOFLINE, power, True),
        "the same with chain, waits, blocks, atomics": form(None, power, True),
        "the model": lambda before, after, us: model.child_us(before, after, us, gpu, power),
    }


def read(options: argparse.Namespace) -> Campaign:
    """Returns the campaign of the tables that the options name."""
    tables = {name: as_rows(_table(options.tables, name)) for name in campaign.TABLES}
    files = {
        (family.name, name): texts.keys()
        for family in catalog.load([KERNELS]).values()
        for name, texts in sources_of(family.variants).items()
    }
    return campaign.read(tables, files)


def _table(folder: Path, name: str) -> pd.DataFrame:
    return read_table(folder, name) if any(folder.glob(f"{name}.*")) else pd.DataFrame()


def collected(found: Campaign, calibration: Calibration) -> list[Step]:
    """Returns all steps of the campaign."""
    variants = {
        (family.name, variant.name): variant
        for family in catalog.load([KERNELS]).values()
        for variant in family.variants
    }
    tried = forms(found.gpu, calibration.power)
    steps_found = []
    for reason, _ in steps.reasons(found, calibration):
        key, of_parent = (
            (reason.family, variant, reason.case) for variant in (reason.variant, reason.parent)
        )
        before, after = found.times[of_parent], found.times[key]
        variant = variants.get(key[:2])
        predicted = {
            name: before.us - form(found.launches[of_parent], found.launches[key], before.us)
            for name, form in tried.items()
        }
        steps_found.append(
            Step(
                reason,
                before.us,
                after.us,
                judge(before, after).word in (FASTER, SLOWER),
                variant.causes if variant else (),
                (variant and variant.planted) or "",
                (variant and variant.decoy) or "",
                predicted,
            )
        )
    return steps_found


def calibrated(found: Campaign) -> Calibration:
    """Returns the calibration by the planted pairs of the fitted half."""
    fitted = [step for step in collected(found, Calibration(4.0, 1.0)) if step.planted == "fitted"]
    pairs = []
    for step in fitted:
        key, of_parent = (
            (step.reason.family, name, step.reason.case) for name in (step.reason.variant, step.reason.parent)
        )
        sides = (found.launches[of_parent], found.launches[key])
        pairs.append((*sides, found.times[of_parent], found.times[key]))
    if not pairs:
        sys.exit("the campaign has no planted pairs to fit to")
    return model.fit(pairs, found.gpu, POWERS)


def write_calibration(calibration: Calibration, path: Path) -> None:
    """Writes fitted values, if they can be read again.

    Raises:
        WarplogError: One is out of its range.
        YAMLError: One is not finite.
    """
    text = HEADER + yaml.encode(calibration).decode()
    door.decode(parse_yaml(text), Calibration, str(path))
    path.write_text(text)


def table_of_forms(found: Sequence[Step]) -> Iterator[str]:
    """Yields the table of forms as Markdown."""
    untied = [step for step in found if step.differs]
    large = [step for step in untied if step.gain >= LEAST_GAIN]
    yield f"| form | within 25 % / 40 % of the gain ({len(untied)}) | gains of at least 15 % ({len(large)}) |"
    yield "|---|---|---|"
    for name in untied[0].by_form if untied else ():
        columns = []
        for chosen in (untied, large):
            errors = [abs(step.by_form[name] / step.reason.measured_us - 1) for step in chosen]
            columns.append(f"{sum(e <= 0.25 for e in errors)} / {sum(e <= 0.40 for e in errors)}")
        yield f"| {name} | {' | '.join(columns)} |"


def criteria(found: Sequence[Step], forecasts: Sequence[Forecast]) -> Iterator[str]:
    """Yields each criterion: what is counted, of how many, and the share that it asks for."""
    large = [step for step in found if step.differs and step.gain >= LEAST_GAIN]
    yield _line("gains of at least 15 % within 40 %", [step.error <= 0.40 for step in large], 85)
    yield _line("gains of at least 15 % within 25 %", [step.error <= 0.25 for step in large], 75)
    labelled = [step for step in large if step.causes and "none" not in step.causes]
    sized = [step.error <= 0.40 and step.reason.mechanism in step.causes for step in labelled]
    yield _line("of these with a stated cause, size within 40 % and cause", sized, 75)
    allowed = [max(0.4 * abs(s.reason.measured_us), 0.05 * max(s.parent_us, s.us)) for s in found]
    missed = [abs(s.reason.predicted_us - s.reason.measured_us) for s in found]
    yield _line(
        "all steps: max(40 % of the gain, 5 % of the slower time)",
        [m <= a for m, a in zip(missed, allowed, strict=True)],
        80,
    )
    yield _line("forecasts of the one thing that a child mends, within 40 %", _forecast(large, forecasts), 75)
    judged = [step for step in found if step.planted == "judged" and not step.decoy]
    yield _line("planted pairs: cause named", [step.reason.mechanism in step.causes for step in judged], 100)
    yield _line("planted pairs: gain within 25 %", [step.error <= 0.25 for step in judged], 90)
    alike = [step for step in found if step.decoy]
    yield _line("look-alikes not named", [step.reason.mechanism != step.decoy for step in alike], 100)
    words = {word: sum(step.reason.word == word for step in large) for word in steps.WORDS}
    yield "words of gains of at least 15 %: " + ", ".join(f"{count} {word}" for word, count in words.items())


def _forecast(large: Sequence[Step], forecasts: Sequence[Forecast]) -> list[bool]:
    """Returns whether it was forecast of each child that mends one thing, as its author states, and all but little."""
    saved_us = {(f.family, f.variant, f.case, f.mechanism): f.saved_us for f in forecasts}
    near = []
    for reason, causes_stated in (
        (step.reason, step.causes) for step in large if step.reason.measured_us > 0
    ):
        if len(causes_stated) == 1 and causes_stated[0] in {*MENDS, "launches", "dram_bytes"}:
            before, after = (
                saved_us.get((reason.family, variant, reason.case, causes_stated[0]), 0.0)
                for variant in (reason.parent, reason.variant)
            )
            if after <= LITTLE * before:
                near.append(abs(before / reason.measured_us - 1) <= 0.40)
    return near


def _line(what: str, held: Sequence[bool], asked_pct: int) -> str:
    share = f"{100 * sum(held) / len(held):.0f} %" if held else "none"
    return f"{what}: {sum(held)} of {len(held)} ({share}; asked: {asked_pct} %)"


def write(found: Sequence[Step], path: Path) -> None:
    """Writes a row per step as CSV."""
    rows = [
        {
            **asdict(step.reason),
            "parent_us": step.parent_us,
            "us": step.us,
            "differs": step.differs,
            "causes": ",".join(step.causes),
            "planted": step.planted,
            "decoy": step.decoy,
            **step.by_form,
        }
        for step in found
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Reads the options, prints the tables, and writes the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", type=Path)
    committed = model.calibration()
    parser.add_argument("--power", type=float, default=committed.power)
    parser.add_argument("--error", type=float, default=committed.error)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = read(options)
    calibration = Calibration(options.power, options.error)
    if options.write:
        names = {str(row["campaign"]) for row in as_rows(_table(options.tables, "variants"))}
        calibration = structs.replace(calibrated(found), campaigns=tuple(sorted(names)))
        write_calibration(calibration, model.CALIBRATION)
    print(f"p = {calibration.power:g}, error {calibration.error:.2f}")
    every = collected(found, calibration)
    print(*table_of_forms(every), *criteria(every, list(steps.forecast(found, calibration))), sep="\n")
    if options.output:
        write(every, options.output)


if __name__ == "__main__":
    main()
