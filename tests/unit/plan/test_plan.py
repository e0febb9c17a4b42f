"""The plan: which files a configuration requires; unknown names are refused with a suggestion."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from copied_project import RestoredCopy
from host_family import make_family
from shipped_families import FAMILIES
from warplog import figures
from warplog.catalog import family as catalog
from warplog.catalog import winners
from warplog.cli.checkup import host
from warplog.core.errors import WarplogError
from warplog.machine import device, interpreter, packages
from warplog.plan import plan
from warplog.plan.family_plan import FamilyPlan
from warplog.plan.files import Files
from warplog.plan.jobs import CheckJob
from warplog.plan.making import make_plan
from warplog.plan.parameters import Parameters
from warplog.plan.selection import choose_figures
from warplog.records import door, stages
from warplog.records.verification import manifest

LIVE = {"mode": "live", "gpu": "h200"}


@pytest.fixture(scope="module")
def copied(project: Path, tmp_path_factory: pytest.TempPathFactory) -> RestoredCopy:
    original = tmp_path_factory.mktemp("original")
    for name in ("kernels", "config"):
        shutil.copytree(project / name, original / name)
    return RestoredCopy(original, tmp_path_factory.mktemp("project") / "copy")


@pytest.fixture
def place(copied: RestoredCopy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Returns a copy of this project's kernels and configuration, without GPU and recorded campaigns."""
    monkeypatch.chdir(copied.place)
    monkeypatch.setattr(device, "boards", list)
    yield copied.place
    copied.restore()


def test_live_mode_for_a_named_gpu_requires_no_gpu_in_this_machine(place: Path) -> None:
    made = make_plan(LIVE)
    assert (made.gpu, made.arch, made.live) == ("h200", "sm_90", True)
    assert "results/time/h200/sgemm.json" in Files(made).record_files(stages.TIME)
    assert "results/build/sm_90/sgemm/naive/record.json" in Files(made).builds_of_all()
    assert "h200 (sm_90), which is not here" in made.message
    assert len(Files(made).references()) == len(made.chosen), "the references of all families are tried"


def test_the_references_are_tried_again_if_what_their_arrays_must_be_like_changes(place: Path) -> None:
    only = {**LIVE, "families": "transpose"}
    first = Parameters(Files(make_plan(only))).trial()
    assert [Path(file).parent.name for file in first["family_files"]] == ["transpose"]
    file = place / "kernels" / "transpose" / "family.yaml"
    file.write_text(file.read_text().replace("title: ", "title: Another "))
    assert Parameters(Files(make_plan(only))).trial() == first
    file.write_text(file.read_text().replace("check_cases:", 'check_cases:\n  "7x9": {M: 7, N: 9}', 1))
    assert Parameters(Files(make_plan(only))).trial() != first


def test_baseline_always_runs(place: Path) -> None:
    made = make_plan({**LIVE, "variants": "sgemm/naive"})
    assert made.pairs() == [("sgemm", "naive"), ("sgemm", "cublas")]


def test_families_that_a_selection_takes_off_the_tables_are_named(place: Path) -> None:
    only = {**LIVE, "families": "sgemm"}
    assert "leave out" not in make_plan(only).message
    tables = place / "results" / "tables"
    tables.mkdir(parents=True)
    (tables / "variants.csv").write_text("family,variant\nsgemm,naive\nscan,cub\nscan,naive\npower,zeros\n")
    said = "tables, figures and pages will leave out scan and power, which are not in `families`; their records stay"
    assert make_plan(only).message.endswith(said)
    assert "leave out" not in make_plan(LIVE).message
    (tables / "variants.csv").write_bytes(b"\xff\n1")
    assert "leave out" not in make_plan(only).message


def test_choices_may_be_lists_strings_and_numbers(place: Path) -> None:
    made = make_plan({**LIVE, "variants": ["sgemm/naive", "warptile"], "cases": 4096})
    assert [v for _, v in made.pairs()] == ["naive", "warptile", "cublas"]
    assert made.cases["sgemm"] == ("4096",)
    assert made.family_plan("sgemm").captured_cases()["naive"] == ("4096",)


def test_numbers_are_text_where_the_key_holds_text(place: Path) -> None:
    """Snakemake reads `--config commit=0123456` as a number."""
    made = make_plan({**LIVE, "commit": 123456, "campaign": 2026})
    assert (made.settings.commit, made.settings.campaign) == ("0123456", "2026")
    assert make_plan({**LIVE, "commit": 12345678}).settings.commit == "12345678"
    with pytest.raises(WarplogError, match="track"):
        make_plan({**LIVE, "track": 1})


def test_a_figure_that_a_family_names_is_drawn_for_such_families_only(place: Path) -> None:
    made = make_plan({**LIVE, "families": "sgemm,overlap", "variants": "naive,three_streams"})
    assert Files(made).figures() == ["results/figures/overlap", "results/figures/sgemm"]
    assert {"ladder", "overlap"} <= set(made.drawn["overlap"])
    assert "ladder" in made.drawn["sgemm"]
    assert "overlap" not in made.drawn["sgemm"]
    alone = make_plan({**LIVE, "families": "sgemm"})
    assert "overlap" not in alone.drawn["sgemm"], "also if that family is not run"


@pytest.mark.parametrize("config", [{}, {"families": "scan"}, {"variants": "naive"}])
def test_the_sanitizer_includes_the_oracle_unless_families_or_variants_are_chosen(
    place: Path, config: dict
) -> None:
    made = make_plan({**LIVE, **config})
    records = Files(made).sanitized()
    probes = {f"results/sanitize/h200/{family}.json" for family in ("oracle", "oracle_sm90")}
    assert set(records) == set(Files(made).record_files(stages.SANITIZE)) | (set() if config else probes)
    assert len(records) == len(set(records))


def test_the_accesses_of_all_chosen_variants_are_traced_and_counted_if_counters_are_wanted(
    place: Path,
) -> None:
    def job(**config: object) -> dict:
        parameters = Parameters(Files(make_plan({**LIVE, "families": "transpose", **config})))
        return dict(parameters.accesses(SimpleNamespace(family="transpose")))

    assert "cublas" in job()["variants"]
    assert [job()["counted"], job(profile={"ncu": False})["counted"]] == [True, False]
    kernels = place / "kernels" / "transpose" / "family.yaml"
    before, text = job()["contract"], kernels.read_text()
    kernels.write_text(f'{text}accesses: ["1024"]\n')
    assert job()["contract"] == before, "the smallest case by its name"
    kernels.write_text(f"{text}accesses: [256x*]\n")
    assert job()["contract"] != before


def test_timelines_are_captured_for_chosen_variants_with_marks_only(place: Path) -> None:
    made = make_plan({**LIVE, "families": "sgemm,scan,reduction"})
    assert set(Files(made).timelines()) == {
        f"results/timeline/h200/{family}.json" for family in ("sgemm", "scan")
    }
    job = Parameters(Files(made)).timeline(SimpleNamespace(family="scan"))
    assert list(job["variants"]) == ["decoupled_lookback", "warp_specialised"]
    marked = Files(made).marked_builds(SimpleNamespace(family="scan"))
    assert [Path(path).parent.name for path in marked] == list(job["variants"])
    assert [Path(path).parts[1] for path in marked] == ["timeline"] * 2
    assert Files(make_plan({**LIVE, "variants": "sgemm/naive"})).timelines() == []


def test_a_build_with_marks_has_the_parameters_of_the_variant_and_one_more(place: Path) -> None:
    made = make_plan({**LIVE, "families": "scan"})
    keys = SimpleNamespace(arch="sm_90", family="scan", variant="decoupled_lookback")
    plain, marked = Parameters(Files(made)).build(keys), Parameters(Files(made)).marked(keys)
    assert marked["parameters"] == {**plain["parameters"], "WARPLOG_TIMELINE": 1}


def test_swim_lanes_are_drawn_where_a_timeline_is_recorded_and_tables_follow_the_record(place: Path) -> None:
    config = {**LIVE, "families": "sgemm,scan"}
    before = make_plan(config)
    assert "swim_lanes" not in before.drawn["scan"]
    states = {Parameters(Files(before)).timelines()}
    record = place / "results" / "timeline" / "h200" / "scan.json"
    record.parent.mkdir(parents=True)
    for text in ("{}", "{ }"):
        record.write_text(text)
        after = make_plan(config)
        states.add(Parameters(Files(after)).timelines())
    assert "swim_lanes" in after.drawn["scan"]
    assert "swim_lanes" not in after.drawn["sgemm"]
    assert len(states) == 3


def test_families_in_kernel_folders_are_found(place: Path) -> None:
    make_family(place / "mine")
    made = make_plan({**LIVE, "kernel_folders": ["mine"]})
    assert ("scale", "right") in made.pairs()
    assert ("sgemm", "naive") in made.pairs()


def copy_recorded(place: Path, project: Path, *parts: str) -> None:
    """Copies these parts of the recorded campaign, with a manifest of them alone."""
    root = "results/recorded/h200"
    for part in parts:
        (place / root / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / root / part, place / root / part)
    manifest.write(place / root, "some", "")


def test_a_gpu_other_than_the_recorded_one_is_refused(place: Path, project: Path) -> None:
    copy_recorded(place, project, "campaign/h200.json")
    assert make_plan({"gpu": "h200"}).gpu == "h200"
    with pytest.raises(
        WarplogError, match=r"gpu: 'h300': the recorded campaign results/recorded/h200 was measured"
    ):
        make_plan({"gpu": "h300"})


def test_a_recorded_build_is_used_if_source_headers_and_parameters_are_unchanged(
    place: Path, project: Path
) -> None:
    copy_recorded(place, project, "campaign/h200.json", "records/build.tar.xz")
    config = {"families": "sgemm", "variants": "sgemm/naive,bank_padded,autotuned"}
    assert Files(make_plan(config)).builds_of_all() == ["results/recorded/h200/records/build.tar.xz"]
    assert not [path for path in Files(make_plan(config)).compiled() if "/recorded/" in path]

    def compiled_here() -> set[str]:
        return {
            Path(p).parent.name for p in Files(make_plan(config)).builds_of_all() if "/recorded/" not in p
        }

    unchanged = make_plan(config)
    assert (Files(unchanged).references(), Files(unchanged).trial()) == ([], []), "no code of a family runs"
    source = place / "kernels" / "sgemm" / "naive.cu"
    source.write_text(source.read_text() + "// edited\n")
    assert compiled_here() == {"naive"}
    edited = make_plan(config)
    assert Files(edited).references() == ["kernels/sgemm/reference.py"]
    assert Files(edited).trial() == ["results/build/.references"]
    header = place / "kernels" / "sgemm" / "vectorized_layout.cuh"
    header.write_text(header.read_text() + "// edited\n")
    assert compiled_here() == {"naive", "bank_padded"}
    shutil.rmtree(place / "kernels" / "sgemm" / "tuned")
    assert compiled_here() == {"naive", "bank_padded", "autotuned"}


@pytest.mark.parametrize("name", ["my project", "a&b", "it's", "$x"])
def test_an_interpreter_that_snakemake_cannot_start_is_refused_with_the_remedy(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = f"/home/me/{name}/.venv/bin/python"
    assert "cannot start jobs" in interpreter.unusable(path)
    assert not interpreter.unusable("/home/Jürgen/a-b_c.d/e+f@2,5/.venv/bin/python3.11")
    monkeypatch.setattr(interpreter, "unusable", lambda: "no")
    with pytest.raises(WarplogError, match="UV_PROJECT_ENVIRONMENT"):
        make_plan(LIVE)
    assert host.python().status == "fail"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({**LIVE, "variants": "niave"}, "did you mean 'naive'?"),
        ({**LIVE, "families": "sgem"}, "did you mean 'sgemm'?"),
        ({**LIVE, "cases": 100}, "'100' does not exist"),
        ({"mode": "live", "gpu": "h20"}, "did you mean 'h200'?"),
        ({**LIVE, "kernel_folders": ["nowhere"]}, "nowhere: no such folder"),
        ({}, "no recorded campaign results/recorded/h200; recorded: none"),
        ({"check": 3}, "config: check: expected a mapping of keys to values, got 3"),
        ({"time": {"max_seconds": "long"}}, "config: time.max_seconds: expected a number, got 'long'"),
        ({"kernel_folders": "mine"}, "config: kernel_folders: expected a list, got 'mine'"),
        ({"variants": None}, "config: variants: expected a whole number or text or a list, got no value"),
    ],
)
def test_wrong_names_are_refused(place: Path, config: dict[str, object], words: str) -> None:
    with pytest.raises(WarplogError, match=r".*") as error:
        make_plan(config)
    assert words in str(error.value)


def contract(made: plan.Plan, variant: str) -> str:
    """Returns the hash of what compiling a variant of sgemm depends on."""
    wildcards = SimpleNamespace(arch=made.arch, family="sgemm", variant=variant)
    return Parameters(Files(made)).build(wildcards)["contract"]


def test_contract_changes_with_parameters_and_not_with_another_variant(place: Path) -> None:
    before = contract(make_plan(LIVE), "warptile")
    path = place / "kernels" / "sgemm" / "family.yaml"
    path.write_text(path.read_text().replace("BLOCK: 32", "BLOCK: 64"))
    assert contract(make_plan(LIVE), "warptile") == before
    path.write_text(path.read_text().replace("BK: 16, WM: 32", "BK: 32, WM: 32", 1))
    assert contract(make_plan(LIVE), "warptile") != before


def test_drafts_run_only_when_they_are_named(place: Path) -> None:
    for family, entry in (("sgemm", "  - name: tma_pipelined\n"), ("bf16_gemm", "variants:\n")):
        path = place / "kernels" / family / "family.yaml"
        draft = {"sgemm": f"{entry}    draft: true\n", "bf16_gemm": f"draft: true\n{entry}"}[family]
        assert entry in path.read_text()
        path.write_text(path.read_text().replace(entry, draft))
    every = dict(make_plan(LIVE).pairs())
    assert "bf16_gemm" not in every
    assert ("sgemm", "tma_pipelined") not in make_plan(LIVE).pairs()
    named = make_plan({**LIVE, "families": "bf16_gemm"}).pairs()
    assert ("bf16_gemm", "wgmma_tma") in named
    assert ("sgemm", "tma_pipelined") in make_plan({**LIVE, "variants": "sgemm/tma_pipelined"}).pairs()


def test_tune_covers_all_tunable_variants_unless_some_are_named(place: Path) -> None:
    made = make_plan(LIVE)
    every = [
        f"results/tune/h200/{f}/{v.name}.png"
        for f in made.chosen
        for v in made.families[f].variants
        if v.tune
    ]
    assert Files(made).tuned() == every
    assert {"results/tune/h200/sgemm/autotuned.png", "results/tune/h200/scan/decoupled_lookback.png"} <= {
        *every
    }
    assert Files(make_plan({**LIVE, "variants": "naive"})).tuned() == []
    assert Files(make_plan({**LIVE, "variants": "autotuned"})).tuned() == [
        "results/tune/h200/sgemm/autotuned.png"
    ]


def test_the_best_parameters_recorded_for_this_gpu_are_compiled_and_no_others(place: Path) -> None:
    shutil.rmtree(place / "kernels" / "sgemm" / "tuned")
    wildcards = SimpleNamespace(arch="sm_90", family="sgemm", variant="autotuned")
    before = make_plan({**LIVE, "variants": "autotuned"})
    assert Parameters(Files(before)).build(wildcards)["parameters"] == {
        "BM": 128,
        "BN": 128,
        "BK": 16,
        "TM": 8,
        "TN": 8,
    }
    best = {"BM": 64, "BN": 64, "BK": 16, "TM": 4, "TN": 4}
    texts = dict.fromkeys(("gpu_name", "driver", "nvcc", "campaign", "commit", "found"), "x")
    numbers = {
        "score_us": 1.0,
        "cases": ["4096"],
        "default": None,
        "runner_up": None,
        "seen": 2,
        "settings": 2,
    }
    family = before.families["sgemm"]
    winners.write_winner(
        winners.winner_file(family, "autotuned", "h200"),
        winners.Winner(parameters=best, **numbers, source_sha256="0" * 64, **texts),
    )
    after = make_plan({**LIVE, "variants": "autotuned"})
    assert Parameters(Files(after)).build(wildcards)["parameters"] == best
    assert contract(after, "autotuned") != contract(before, "autotuned")
    assert after.chosen["sgemm"][0].parameters == best
    assert contract(after, "cublas") == contract(before, "cublas")
    elsewhere = make_plan({**LIVE, "gpu": "a100-sxm4-80gb", "variants": "autotuned"})
    assert contract(elsewhere, "autotuned") == contract(before, "autotuned")


def test_nsys_captures_all_timed_cases_of_a_library_and_ncu_does_not(place: Path) -> None:
    made = make_plan(LIVE)
    sgemm = made.family_plan("sgemm")
    ncu, nsys = sgemm.captured_cases(), sgemm.traced_cases()
    assert nsys["cublas"] == made.cases["sgemm"]
    assert nsys["naive"] == ncu["naive"] == ncu["cublas"]
    assert len(ncu["cublas"]) < len(nsys["cublas"])


def test_contracts_of_a_family_do_not_depend_on_the_chosen_variants(place: Path) -> None:
    everything, part = (
        make_plan(LIVE).family_plan("sgemm"),
        make_plan({**LIVE, "variants": "naive"}).family_plan("sgemm"),
    )
    assert len(part.variants) < len(everything.variants)
    assert part.check_contract() == everything.check_contract()
    assert part.time_contract() == everything.time_contract()


def test_contracts_change_with_the_element_type_of_a_case(place: Path) -> None:
    def with_types(small: str, large: str) -> FamilyPlan:
        made = make_plan(LIVE).family_plan("sgemm")
        a, *rest = made.family.arguments
        by_case = structs.replace(a, element={small: "M < 1000", large: "M >= 1000"})
        return replace(made, family=structs.replace(made.family, arguments=(by_case, *rest)))

    narrow, other = with_types("float32", "bfloat16"), with_types("bfloat16", "float32")
    assert narrow.check_contract() != other.check_contract()
    assert narrow.time_contract() != other.time_contract()
    assert narrow.time_contract() == with_types("float32", "bfloat16").time_contract()


def test_the_memory_of_arrays_is_a_parameter_of_the_job(place: Path) -> None:
    made = make_plan({**LIVE, "families": "transfer"})
    family, job = (
        made.family_plan("transfer"),
        Parameters(Files(made)).check(SimpleNamespace(family="transfer")),
    )
    memory = door.decode(job, CheckJob, "job").memory
    assert memory == {v.name: dict(v.memory) for v in family.variants if v.memory} != {}


def test_figures_that_would_be_empty_are_left_out(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    families = catalog.load([Path("kernels")])
    drawn = {name: set(figures) for name, figures in choose_figures(families, families).items()}
    counted = {"bank_conflicts", "occupancy", "warp_stalls", "roofline"}
    assert counted | {"timeline", "claims"} <= drawn["sgemm"]
    assert not counted & (drawn["transfer"] | drawn["overlap"])
    assert "timeline" in drawn["transfer"]
    assert "timeline" not in drawn["overlap"]
    assert "bank_conflicts" not in drawn["vector_add"] | drawn["global_access"]
    assert "bank_conflicts" in drawn["histogram"] & drawn["power"] & drawn["scan"]
    assert "roofline" not in drawn["transpose"]
    assert "claims" not in drawn["scan"]
    on_request = {"swim_lanes", "lanes_over_sectors", "lanes_over_banks", "owners", "tile_order"}
    assert not on_request & set().union(*drawn.values())
    recorded = {"accesses": ["sgemm"], "timelines": ["scan"]}
    drawn = {name: set(figures) for name, figures in choose_figures(families, families, recorded).items()}
    assert on_request & drawn["sgemm"] == on_request - {"swim_lanes"}
    assert on_request & drawn["scan"] == {"swim_lanes"}


def test_a_figure_that_families_must_list_is_not_drawn_for_one_that_does_not() -> None:
    """Not even in a folder of its own, where no family lists any."""
    scan = {"scan": FAMILIES["scan"]}
    drawn = choose_figures(scan, scan)["scan"]
    listed = {figure for figure, needed in figures.needs().items() if "listed" in needed}
    assert {"overlap", "tile_schedule", "instruction_mix"} <= listed
    assert not listed & set(drawn)
    named = {"scan": structs.replace(scan["scan"], figures=("overlap",))}
    assert set(choose_figures(named, named)["scan"]) == {*drawn, "overlap"} - {"timeline"}


@pytest.mark.parametrize(
    ("entry", "sources"),
    [
        ("compile: {std: 20},", []),
        ("compile: {defines: {A: 1}},", []),
        ("compile: {include: [../../src], sources: [../../src/also.cu]},", ["src/also.cu", "src/also.cuh"]),
        ("requires: {where: [N > 3]},", []),
    ],
)
def test_a_build_depends_on_the_options_and_further_sources_of_its_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, sources: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(device, "detect", lambda: None)
    file = make_family(Path("kernels")).file
    Path("src").mkdir()
    Path("src/also.cu").write_text('#include "also.cuh"\n')
    Path("src/also.cuh").touch()
    wildcards = SimpleNamespace(arch="sm_90", family="scale", variant="right")
    before = make_plan(LIVE)
    file.write_text(file.read_text().replace("{name: right,", f"{{name: right, {entry}"))
    after = make_plan(LIVE)
    assert (
        Parameters(Files(after)).build(wildcards)["contract"]
        != Parameters(Files(before)).build(wildcards)["contract"]
    )
    added = [path for path in Files(after).sources(wildcards) if path not in Files(before).sources(wildcards)]
    assert added == sources
    assert set(sources) <= set(Files(after).family_sources(wildcards)) & set(
        Files(after).page_sources(wildcards)
    )


def test_a_borrowed_baseline_is_run_with_the_family_that_borrows_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place / "kernels" / "mine"
    folder.mkdir()
    text = (place / "kernels" / "sgemm" / "family.yaml").read_text()
    head = text[: text.index("variants:")].replace("family: sgemm", "family: mine")
    head = re.sub(r"^timeline:.*\n(?:  .*\n)*", "", head, flags=re.MULTILINE)
    variant = "variants:\n  - {name: own, file: ../sgemm/naive.cu, idea: mine, parameters: {BLOCK: 32}}\n"
    (folder / "family.yaml").write_text(head.replace("baseline: cublas", "baseline: sgemm.cublas") + variant)
    shutil.copy(place / "kernels" / "sgemm" / "reference.py", folder)
    made = make_plan({**LIVE, "families": "mine"})
    assert made.pairs() == [("mine", "own"), ("mine", "cublas")]
    assert "results/build/sm_90/mine/cublas/record.json" in Files(made).builds_of_all()
    again = plan.Plan.made_of(made.decisions())
    assert again.families["mine"].variant("cublas").file == Path("kernels/sgemm/cublas.cu")
    assert again.families["mine"].variant("cublas").predicts == (), "they name cases of the other family"


def test_jobs_on_other_machines_read_the_plan_that_was_made(place: Path) -> None:
    made = make_plan({**LIVE, "families": "quantization"})
    made.write(Path("results/plan.json"))
    again = plan.Plan.read(Path("results/plan.json"))
    wildcards = SimpleNamespace(gpu="h200", arch="sm_90", family="quantization")
    assert (again.settings, again.message, again.drawn) == (made.settings, made.message, made.drawn)
    assert again.decisions() == made.decisions()
    assert Parameters(Files(again)).time(wildcards) == Parameters(Files(made)).time(wildcards)
    assert Files(again).builds(wildcards) == Files(made).builds(wildcards)


@pytest.mark.parametrize("gpus", ["h200,h100-80gb-hbm3", ["h200", "h100-80gb-hbm3"]])
@pytest.mark.parametrize("key", ["gpu", "gpus", "recorded"])
def test_several_campaigns_are_refused_with_the_command_that_sets_them_side_by_side(
    place: Path, key: str, gpus: object
) -> None:
    with pytest.raises(
        WarplogError, match=rf"config: {key}: h200, h100-80gb-hbm3: a run .*`warplog beside RUN RUN`"
    ):
        make_plan({"mode": "live", key: gpus})


def test_a_python_variant_is_built_again_with_another_version_of_its_compiler(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place / "kernels" / "vector_add" / "family.yaml"
    entry = "  - {name: in_triton, language: triton, idea: blocks of elements}\n"
    path.write_text(path.read_text().replace("variants:\n", f"variants:\n{entry}"))
    module = place / "kernels" / "vector_add" / "in_triton.py"
    module.write_text("def launch(arrays, scalars, stream):\n    pass\n")
    versions = {"triton": "3.6.0"}
    monkeypatch.setattr(packages, "version", lambda name: versions.get(name, ""))
    wildcards = SimpleNamespace(arch="sm_90", family="vector_add", variant="in_triton")
    made = make_plan(LIVE)
    assert Files(made).sources(wildcards) == ["kernels/vector_add/in_triton.py"]
    before, cuda = Parameters(Files(made)).build(wildcards)["contract"], contract(made, "naive")
    assert Parameters(Files(make_plan(LIVE))).build(wildcards)["contract"] == before
    versions["triton"] = "3.8.0"
    after = make_plan(LIVE)
    assert Parameters(Files(after)).build(wildcards)["contract"] != before
    assert contract(after, "naive") == cuda
