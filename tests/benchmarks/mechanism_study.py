"""How well does the model of mechanisms predict the steps of campaigns? Prints Markdown, writes a row per step.

    python tests/benchmarks/mechanism_study.py results/tables --output steps.csv
    python tests/benchmarks/mechanism_study.py results/tables --write
    python tests/benchmarks/mechanism_study.py \
        results/recorded/h100/tables:tests/data/mechanisms/h100 results/recorded/h200/tables:tests/data/mechanisms/h200

The last prints the tables of docs/judging.md, of counts and of planted pairs, with a column for each GPU: of families
that are recorded, and of planted pairs, which are not. What is less than asked is bold. Power and error are those of
calibration.yaml, unless they are given; `--write` fits both to the planted pairs of the first campaign that are
`fitted`, and writes them there.
"""

import argparse
import csv
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from msgspec import structs, yaml

from warplog.analysis.explanation import sources_of
from warplog.analysis.mechanisms import campaign, ceilings, model, steps, units
from warplog.analysis.mechanisms.campaign import Campaign
from warplog.analysis.mechanisms.forecasts import MENDS
from warplog.analysis.mechanisms.model import Calibration
from warplog.analysis.mechanisms.work import Launch, Work
from warplog.analysis.verdicts import FASTER, SLOWER, judge
from warplog.catalog import family as catalog
from warplog.core.columns import Cell
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


@dataclass(frozen=True)
class Count:
    """How many of what is counted are as they should be, and the share that is asked for, if one is."""

    what: str
    asked_pct: int | None
    held: Sequence[bool]

    def reached(self) -> str:
        """Returns the count with its share as Markdown, in bold if that is less than asked."""
        pct = 100 * sum(self.held) / max(1, len(self.held))
        reached = f"{sum(self.held)} of {len(self.held)} ({pct:.3g} %)"
        return reached if pct >= (self.asked_pct or 0) else f"**{reached}**"


@cache
def families() -> Mapping[str, catalog.Family]:
    """Returns the families of this repository."""
    return catalog.load([KERNELS])


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


def read(folders: Sequence[Path]) -> Campaign:
    """Returns the campaign whose tables are in these folders."""
    sources = {name: sources_of(family.variants) for name, family in families().items()}
    return campaign.read({name: _rows(folders, name) for name in campaign.TABLES}, sources, families())


def _rows(folders: Sequence[Path], name: str) -> list[dict[str, Cell]]:
    found = [folder for folder in folders if any(folder.glob(f"{name}.*"))]
    return [row for folder in found for row in as_rows(read_table(folder, name))]


def collected(found: Campaign, calibration: Calibration) -> list[Step]:
    """Returns all steps of the campaign."""
    variants = {
        (family.name, variant.name): variant for family in families().values() for variant in family.variants
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


def counts(found: Sequence[Step], forecasts: Sequence[Forecast]) -> Iterator[Count]:
    """Yields what is counted, and what is asked of it."""
    judged = [step for step in found if step.planted == "judged" and not step.decoy]
    alike = [step for step in found if step.decoy]
    large = [step for step in found if step.differs and step.gain >= LEAST_GAIN]
    yield Count(
        "judged pairs: the planted mechanism is named first", 100, [_is_named(step) for step in judged]
    )
    yield Count("judged pairs: gain within 25 %", 90, [step.error <= 0.25 for step in judged])
    yield Count(
        "look-alikes that are not named", 100, [step.reason.mechanism != step.decoy for step in alike]
    )
    groups: Mapping[str, tuple[Sequence[Step], tuple[int | None, ...]]] = {
        "all families, gains and losses of at least 15 % of the slower time": (large, (85, 75, 75)),
        **{
            f"of these, {name}": ([step for step in large if step.planted == half], (None,) * 3)
            for name, half in (("fitted pairs", "fitted"), ("judged pairs", "judged"), ("other steps", ""))
        },
    }
    for name, (steps_of, asked) in groups.items():
        labelled = [step for step in steps_of if step.causes and "none" not in step.causes]
        yield Count(f"{name}: within 40 %", asked[0], [step.error <= 0.4 for step in steps_of])
        yield Count("the same, within 25 %", asked[1], [step.error <= 0.25 for step in steps_of])
        both = [step.error <= 0.4 and _is_named(step) for step in labelled]
        yield Count("the same, within 40 % and a stated cause named", asked[2], both)
    yield Count(
        "all profiled steps: error at most 40 % of the gain, or 5 % of the slower time",
        80,
        [
            abs(s.reason.predicted_us - s.reason.measured_us)
            <= max(0.4 * abs(s.reason.measured_us), 0.05 * max(s.parent_us, s.us))
            for s in found
        ],
    )
    yield Count("forecasts of the one thing that a child mends: within 40 %", 75, _forecast(large, forecasts))


def _is_named(step: Step) -> bool:
    return step.reason.mechanism in step.causes


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


def table_of_counts(of_gpus: Mapping[str, Sequence[Count]]) -> Iterator[str]:
    """Yields what is asked and what is reached on each GPU as Markdown."""
    yield f"| what is asked | asked | {' | '.join(of_gpus)} |"
    yield "|---|---|" + "---|" * len(of_gpus)
    for row in zip(*of_gpus.values(), strict=True):
        asked = "" if row[0].asked_pct is None else f"{row[0].asked_pct} %"
        yield f"| {row[0].what} | {asked} | {' | '.join(count.reached() for count in row)} |"


def table_of_pairs(of_gpus: Mapping[str, Sequence[Step]]) -> Iterator[str]:
    """Yields the planted pairs as Markdown: the predicted and measured savings at their sizes, and what is named."""
    columns = (f"{gpu}: predicted (measured) saving, us | named" for gpu in of_gpus)
    yield f"| parent, child | planted | half | {' | '.join(columns)} |"
    yield "|---|---|---|" + "---|---|" * len(of_gpus)
    sizes: dict[tuple[str, ...], dict[str, list[Reason]]] = {}
    for gpu, found in of_gpus.items():
        for step in found:
            if step.planted:
                planted = f"none; not `{step.decoy}`" if step.decoy else f"`{step.causes[0]}`"
                names = f"`{step.reason.parent}`, `{step.reason.variant}`"
                sizes.setdefault((names, planted, step.planted), {}).setdefault(gpu, []).append(step.reason)
    for pair, reasons in sizes.items():
        cells = [cell for gpu in of_gpus for cell in _savings(reasons.get(gpu, ()))]
        yield f"| {' | '.join((*pair, *cells))} |"


def _savings(reasons: Sequence[Reason]) -> tuple[str, str]:
    savings = (f"{round(reason.predicted_us, 1) + 0.0:.1f} ({reason.measured_us:.1f})" for reason in reasons)
    named = dict.fromkeys("none" if r.mechanism == "none" else f"`{r.mechanism}`" for r in reasons)
    return ", ".join(savings), ", ".join(named)


def write(of_gpus: Mapping[str, Sequence[Step]], path: Path) -> None:
    """Writes a row per step as CSV."""
    rows = [
        {
            "gpu": gpu,
            **asdict(step.reason),
            "parent_us": step.parent_us,
            "us": step.us,
            "differs": step.differs,
            "causes": ",".join(step.causes),
            "planted": step.planted,
            "decoy": step.decoy,
            **step.by_form,
        }
        for gpu, found in of_gpus.items()
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
    parser.add_argument("tables", type=lambda text: list(map(Path, text.split(":"))), nargs="+")
    committed = model.calibration()
    parser.add_argument("--power", type=float, default=committed.power)
    parser.add_argument("--error", type=float, default=committed.error)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    campaigns = list(map(read, options.tables))
    calibration = Calibration(options.power, options.error)
    if options.write:
        names = {str(row["campaign"]) for row in _rows(options.tables[0], "variants")}
        calibration = structs.replace(calibrated(campaigns[0]), campaigns=tuple(sorted(names)))
        write_calibration(calibration, model.CALIBRATION)
    print(f"p = {calibration.power:g}, error {calibration.error:.2f}")
    found: dict[str, list[Step]] = {}
    reached: dict[str, list[Count]] = {}
    for folders, one in zip(options.tables, campaigns, strict=True):
        gpu = str(_rows(folders, "gpus")[0]["gpu_name"])
        found[gpu] = collected(one, calibration)
        reached[gpu] = list(counts(found[gpu], list(steps.forecast(one, calibration))))
        print(f"\n{gpu}\n", *table_of_forms(found[gpu]), sep="\n")
    print("", *table_of_counts(reached), "", *table_of_pairs(found), sep="\n")
    if options.output:
        write(found, options.output)


if __name__ == "__main__":
    main()
