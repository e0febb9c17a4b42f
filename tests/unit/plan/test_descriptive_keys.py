"""What family.yaml only says about a kernel makes no measurement stale; what a measurement depends on does."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from host_family import YAML, make_family
from warplog.catalog.family import load_family
from warplog.machine import device
from warplog.measure.task import CheckWork, Task
from warplog.plan.files import Files
from warplog.plan.making import make_plan
from warplog.plan.parameters import Parameters

ENTRY = "{name: right, parameters: {A: 2}, idea: as it should be"
TUNE = "tune: {cases: ['64'], values: {A: [1, 2]}, threads: 32, where: []}"
TEXT = YAML.replace("{name: right, idea: as it should be", f"{ENTRY}, {TUNE}") + "timeline: {right: '64'}\n"
DESCRIPTIVE = [
    ("title: scaling", "title: another"),
    ("summary: y =", "summary: z ="),
    ("size_label: elements", "size_label: rows"),
    (ENTRY, f"{ENTRY} and more"),
    (ENTRY, f"{ENTRY}, note: its time includes a copy"),
    (ENTRY, f"{ENTRY}, credit: somebody"),
    (ENTRY, f"{ENTRY}, expected: twice as fast"),
    (ENTRY, f"{ENTRY}, predicts: [{{quantity: tflops, low: 1, high: 2, gpu: H100}}]"),
    (ENTRY, f"{ENTRY}, published: [{{value: 1, unit: GFLOP/s, gpu: H100, source: somebody}}]"),
    (
        "variants:",
        "claims: [{id: A1, claim: It is so., source: somebody, not_judged: an opinion}]\nvariants:",
    ),
    ("variants:", "figures: [registers]\nvariants:"),
]
MEASURED = [
    ("factor: 2}", "factor: 3}"),
    ("{N: 1000}", "{N: 1001}"),
    ("{N: 127}", "{N: 128}"),
    ("factor: 3.0", "factor: 4.0"),
    ("int32}", "int64}"),
    ("variants:", "measuring: {timing: host}\nvariants:"),
]


def journal(file: Path, **changes: object) -> str:
    """Returns what a journal must have been written for, if its results are to be kept."""
    task = {"work": CheckWork(rounds=3), "backend": "cupy", "libraries": {}, "library_sha256": "", "runs": ()}
    return Task(**task, family_file=str(file), folder=str(file.parent), **changes).fingerprint()


def jobs(file: Path) -> list[object]:
    """Returns the parameters of all jobs that build or measure the family."""
    made = make_plan({"mode": "live", "gpu": "h200", "families": "scale"})
    job = SimpleNamespace(arch=made.arch, family="scale", variant="right")
    files = Files(made)
    methods = Parameters(files)
    of_variant = methods.build(job), methods.marked(job), methods.tune(job)
    measured = (
        methods.check,
        methods.sanitize,
        methods.time,
        methods.ncu,
        methods.nsys,
        methods.timeline,
    )
    of_family = [parameters(job) for parameters in (*measured, methods.extract)]
    return [methods.trial(), *of_variant, *of_family, files.sources(job), files.family_sources(job)]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(device, "boards", list)
    path = make_family(Path("kernels")).file
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(("old", "new"), DESCRIPTIVE, ids=[new[-24:] for _, new in DESCRIPTIVE])
def test_a_descriptive_key_changes_tables_and_pages_and_no_measurement(
    file: Path, old: str, new: str
) -> None:
    before = jobs(file), journal(file)
    tables = Parameters(Files(make_plan({"mode": "live", "gpu": "h200"}))).tables()
    assert old in TEXT
    file.write_text(TEXT.replace(old, new, 1))
    assert load_family(file)
    assert (jobs(file), journal(file)) == before
    made = make_plan({"mode": "live", "gpu": "h200"})
    assert Parameters(Files(made)).tables() != tables
    assert str(file) in Files(made).page_sources(SimpleNamespace(family="scale"))


@pytest.mark.parametrize(("old", "new"), MEASURED, ids=[new[-24:] for _, new in MEASURED])
def test_what_a_measurement_depends_on_makes_it_stale(file: Path, old: str, new: str) -> None:
    before, unfinished = jobs(file), journal(file)
    assert old in TEXT
    file.write_text(TEXT.replace(old, new, 1))
    assert jobs(file) != before
    assert journal(file) != unfinished


def test_results_of_an_interrupted_run_are_kept_for_the_same_memory_and_reference_only(file: Path) -> None:
    before = journal(file)
    assert journal(file, memory={"": {"x": "pinned"}}) != before
    reference = file.with_name("reference.py")
    reference.write_text(reference.read_text() + "# edited\n")
    assert journal(file) != before
