"""Measures how the stages that evaluate a campaign grow with its variants, and the history with its campaigns.

    python tests/benchmarks/growth.py [--times 1 3 10] [--campaigns 20 60 200] [--families NAME ...] [--steps NAME ...]

The campaign is made from a recorded one: each variant of the named families is there `times` times, with the same
source and records. The history is made of campaigns whose samples are drawn again. Each step runs in a process of its
own; printed are the CPU seconds of it and its threads, and its largest memory. Exit status 1: a step grew faster than
linearly between the two largest sizes, with a tolerance of 15 %, or doing it again without a change took more than it
may.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from warplog.plan.plan import Plan

PROJECT = Path(__file__).parents[2]
TOLERANCE = 1.15
# Largest share of the first time that a step may take if it is done again although nothing changed, with the start of
# its process. In a run, Snakemake starts no job for what is unchanged.
AGAIN = {"figures": 0.35, "mlflow": 0.7}
FOLDERS = ("check", "time", "profile", "extract")


def make_campaign(place: Path, families: Sequence[str], times: int) -> None:
    """Writes a project with `times` copies of each variant, and the records of its live campaign."""
    sys.path.insert(0, str(PROJECT / "tests" / "support"))
    import recorded_campaigns

    source = recorded_campaigns.unpacked("h200")
    for family in families:
        folder = Path(shutil.copytree(PROJECT / "kernels" / family, place / "kernels" / family))
        path = folder / "family.yaml"
        data = yaml.safe_load(path.read_text())
        own = [v for v in data["variants"] if not v.get("draft")]
        data["variants"] = [copied(v, number) for number in range(times) for v in own]
        path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
        for stage in FOLDERS:
            for record in source.glob(f"{stage}/*/{family}.*json"):
                multiply(record, place / "results" / record.relative_to(source), times)
        for record in source.glob(f"build/*/{family}/*/record.json"):
            one = json.loads(record.read_text())
            for number in range(times):
                name = called(one["variant"], number)
                target = place / "results" / record.relative_to(source).parents[1] / name
                target.mkdir(parents=True)
                (target / "record.json").write_text(json.dumps({**one, "variant": name}))
    shutil.copytree(source / "campaign", place / "results" / "campaign")


def called(name: str, number: int) -> str:
    """Returns the name of a copy of a variant; the first has the name itself."""
    return f"{name}_{number}" if number else name


def copied(variant: dict[str, object], number: int) -> dict[str, object]:
    """Returns the entry of a variant's copy: its parent is the parent's copy."""
    name, parent = str(variant["name"]), variant.get("parent")
    suffix = ".py" if "language" in variant and variant["language"] != "cuda" else ".cu"
    compiled = isinstance(variant.get("library"), dict | str)  # already, by others
    file = {} if compiled else {"file": variant.get("file", f"{name}{suffix}")}
    above = called(str(parent), number) if parent else None
    return {**variant, "name": called(name, number), "parent": above, **file}


def multiply(record: Path, target: Path, times: int) -> None:
    """Writes a family's records of a stage with `times` copies of each variant."""
    together = json.loads(record.read_text())
    found = {}
    for number in range(times):
        for name, one in together["variants"].items():
            found[called(name, number)] = {**one, "variant": called(name, number)}
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({**together, "variants": found}))


def make_history(place: Path, count: int) -> None:
    """Writes a project with `count` recorded campaigns of sgemm, whose samples are drawn again."""
    sys.path[:0] = [str(PROJECT / "tests" / "support"), str(PROJECT / "tests" / "support" / "made_up")]
    import made_up_campaigns
    from warplog.records.verification import manifest

    shutil.copytree(PROJECT / "kernels" / "sgemm", place / "kernels" / "sgemm")
    for number in range(count):
        started = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
        about = {"campaign": f"made-up-{number}", "started": started}
        folder = made_up_campaigns.make(place / "results" / "recorded" / f"c{number}", number, about=about)
        manifest.write(folder, f"made-up-{number}", "")


def plan_of() -> "Plan":
    """Returns the plan of the campaign in this folder."""
    from warplog.plan.making import make_plan

    return make_plan({"mode": "live", "gpu": "h200"}, Path())


def do_plan() -> None:
    """The plan, with the inputs and parameters of all jobs."""
    from types import SimpleNamespace

    from warplog.plan.files import Files
    from warplog.plan.parameters import Parameters
    from warplog.records import stages

    plan = plan_of()
    files = Files(plan)
    parameters = Parameters(files)
    files.builds_of_all()
    files.record_files(stages.CHECK, stages.TIME)
    parameters.tables()
    for family, variant in plan.pairs():
        parameters.build(SimpleNamespace(arch=plan.arch, family=family, variant=variant))
    for family in plan.chosen:
        parameters.time(SimpleNamespace(family=family))
        parameters.ncu(SimpleNamespace(family=family))


def do_tables() -> None:
    """Tables, floors, claims and conclusions."""
    from warplog.plan import evaluate

    plan, folder = plan_of(), Path("results/tables")
    source = plan.source()
    evaluate.write_measured(plan, source, folder)
    evaluate.write_floors(plan, source, folder)
    evaluate.write_claims(plan, folder)
    evaluate.write_analysis(plan.families, plan.chosen, folder)


def do_figures() -> None:
    """The figures of all families."""
    from warplog.figures.shared import family_figures
    from warplog.figures.shared.settings import WEB
    from warplog.tables import view

    for name, figures in plan_of().drawn.items():
        data = view.load(Path("results/tables"), name)
        family_figures.draw(data, figures, WEB, Path("results/figures") / name, 1)


def do_pages() -> None:
    """The page of each family."""
    from warplog.plan import publish

    plan, library, results = plan_of(), Path("charts.js"), Path("results")
    library.write_text("")
    for family in plan.drawn:
        page = results / "worklog" / f"{family}.html"
        publish.write_page(plan, family, library, page, results / "latex" / family)


def do_mlflow() -> None:
    """The runs in an SQLite store."""
    results = Path("results")
    from warplog.plan import publish

    publish.log_runs(
        plan_of(), "sqlite:///results/mlflow.db", 1, results / "done.json", results / "runs.html"
    )


def do_compare() -> None:
    """The comparison of the campaign with itself."""
    from warplog.judge import comparison
    from warplog.judge.campaigns import Sources

    found = comparison.run(("results", "results"), Sources(Path(), "", "h200", Path("results")))
    comparison.as_csv(found)
    comparison.as_markdown(found)


def do_history() -> None:
    """The history of all families, as figures and CSV."""
    from warplog.judge import history
    from warplog.judge.figures import history_plot
    from warplog.plan.files import Files
    from warplog.plan.judging import Judging

    plan = plan_of()
    judging = Judging(Files(plan))
    judging.history_state(None)
    families = [plan.families[name] for name in plan.chosen]
    for name, data in history.collect_all(list(map(Path, judging.history())), families, plan.gpu).items():
        history_plot.write(data, plan.families[name], Path("results/history"))


STEPS: dict[str, Callable[[], None]] = {
    "plan": do_plan,
    "tables": do_tables,
    "figures": do_figures,
    "pages": do_pages,
    "mlflow": do_mlflow,
    "compare": do_compare,
}


def measured(step: str, place: Path) -> tuple[float, int]:
    """Runs a step in `place` in a process of its own; returns its CPU seconds and its largest memory in MiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "workflow"), "DO_NOT_TRACK": "true"}
    command = [sys.executable, __file__, "--step", step]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{step}: {done.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(
        done.stdout.split()[-1]
    ) >> 10


def show(what: str, sizes: Sequence[int], costs: Sequence[tuple[float, int]]) -> bool:
    """Prints the costs of a step; returns whether it grew at most linearly between the two largest sizes."""
    cells = "  ".join(f"{seconds:7.1f} s {memory:5} MiB" for seconds, memory in costs)
    linear = len(sizes) < 2 or costs[-1][0] <= TOLERANCE * costs[-2][0] * sizes[-1] / sizes[-2]
    print(f"{what:18} {cells}{'' if linear else '  faster than linear'}", flush=True)
    return linear


def grow_variants(families: Sequence[str], sizes: Sequence[int], steps: Sequence[str]) -> bool:
    """Measures the steps at each size."""
    costs: dict[str, list[tuple[float, int]]] = {}
    for times in sizes:
        with tempfile.TemporaryDirectory(prefix="warplog-growth-") as folder:
            make_campaign(Path(folder), families, times)
            for step in [name for name in STEPS if name in steps]:
                for name in (step, f"{step}, again") if step in AGAIN else (step,):
                    costs.setdefault(name, []).append(measured(step, Path(folder)))
                    print(f"  x {times}: {name}: {costs[name][-1][0]:.1f} s", file=sys.stderr, flush=True)
    good = [show(step, sizes, found) for step, found in costs.items()]
    for step, share in AGAIN.items():
        if step in costs and costs[f"{step}, again"][-1][0] > share * costs[step][-1][0]:
            print(f"{step}, again: more than {share:.0%} of the first time")
            good.append(False)
    return all(good)


def grow_history(sizes: Sequence[int]) -> bool:
    """Measures the history at each number of campaigns."""
    costs = []
    for count in sizes:
        with tempfile.TemporaryDirectory(prefix="warplog-growth-") as folder:
            make_history(Path(folder), count)
            costs.append(measured("history", Path(folder)))
    return show("history", sizes, costs)


def main() -> int:
    """Measures what the options name; returns the exit status."""
    parser = argparse.ArgumentParser(description="Measures how the stages grow.")
    parser.add_argument("--times", nargs="*", type=int, default=[1, 3, 10])
    parser.add_argument("--campaigns", nargs="*", type=int, default=[20, 60, 200])
    parser.add_argument("--families", nargs="+", default=["transpose", "power"])
    parser.add_argument("--steps", nargs="*", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--step", choices=[*STEPS, "history"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        ({**STEPS, "history": do_history})[options.step]()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return 0
    begin = time.monotonic()
    good = []
    if options.times and options.steps:
        print(f"{', '.join(options.families)}: variants x {', '.join(map(str, options.times))}", flush=True)
        good.append(grow_variants(options.families, sorted(options.times), options.steps))
    if options.campaigns:
        print(f"history of {', '.join(map(str, options.campaigns))} campaigns", flush=True)
        good.append(grow_history(sorted(options.campaigns)))
    print(f"{time.monotonic() - begin:.0f} s")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
