"""Verdicts on claims: at and around a threshold, with missing numbers, and for the recorded campaign."""

import dataclasses
import io
import math
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from msgspec import structs

import small_campaign
from shipped_families import FAMILIES
from warplog import figures
from warplog.analysis import answers
from warplog.analysis.quantities import Quantities
from warplog.catalog.claims import KERNELS_PER_LAUNCH, SASS, counts, make_claim
from warplog.catalog.contract import ClaimEntry
from warplog.cli.main import main as warplog
from warplog.core.columns import CLAIMS, FLOORS, MEASUREMENTS
from warplog.figures.shared import style
from warplog.figures.shared.settings import settings_of
from warplog.judge import claims
from warplog.metrics import METRICS
from warplog.records.config import FigureSettings
from warplog.tables import files, view

ROOT = Path(__file__).parents[3]
TABLES = small_campaign.FOLDER / "tables"
GPU = {"sms": 132.0, "l2_mib": math.nan}


def numbers(**times):
    """Returns a campaign of one family `f` at case 1: times per variant, and counters of `a`."""
    rows = [
        {"family": "f", "variant": v, "case": "1", "status": "ok", "reason": "", "median_us": t}
        | {"remarks": '[{"code": "not_tuned", "gpu": "h100"}]' if v == "default" else ""}
        for v, t in times.items()
    ]
    rows.append({"family": "f", "variant": "bad", "case": "1", "status": "wrong", "reason": "all zero"})
    row = {
        "family": "f",
        "variant": "a",
        "kernel": "k",
        "launch": 0,
        "status": "ok",
        "reason": "",
        "unit": "byte",
    }
    metrics = [
        {**row, "case": "1", "metric": "l2_bytes", "value": 0.0, "tool": "ncu"},
        {
            **row,
            "case": "1",
            "metric": "ipc",
            "value": math.nan,
            "tool": "ncu",
            "status": "denied",
            "reason": "no",
        },
        {**row, "case": "1", "metric": "nsys_kernel_duration_us", "value": 1.0, "tool": "nsys"},
        {**row, "case": "1", "metric": "nsys_kernel_duration_us", "value": 2.0, "tool": "nsys", "launch": 1},
        {**row, "case": "", "metric": "sass_instructions", "value": 9, "tool": "cuobjdump"},
        {**row, "case": "", "metric": "sass_LDG.E", "value": 1, "tool": "cuobjdump"},
        {**row, "case": "", "metric": "sass_LDG.E.128", "value": 2, "tool": "cuobjdump"},
        {**row, "case": "", "metric": "sass_LDGSTS.E", "value": 4, "tool": "cuobjdump"},
    ]
    return Quantities(pd.DataFrame(rows), pd.DataFrame(metrics), floors_of(times, 0.0))


def floors_of(variants, floor):
    """Returns the table `floors` of variants of the family `f` at case 1, any two of which have this floor."""
    deviation = math.log1p(floor) / (3.0902 * math.sqrt(2))
    row = {
        "family": "f",
        "case": "1",
        "regime": "rest",
        "deviation": deviation,
        "freedom": math.inf,
        "groups": 0.0,
    }
    return pd.DataFrame([row | {"variant": variant} for variant in variants])


def verdict(measure, confirmed_if="", not_judged="", about="", **times):
    data = {"id": "X1", "claim": "c", "source": "s", "confirmed_if": confirmed_if, "not_judged": not_judged}
    claim = make_claim(ClaimEntry(**data, measure=measure, about=about), "f", "1", "family.yaml")
    return claims.judge(claim, {"n": 8.0}, numbers(**({"a": 2.0, "b": 1.0} | times)), GPU, "NVIDIA H200")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (">= 2", "confirmed"), ("> 2", "refuted"), ("> 1.999", "confirmed"), ("<= 2", "confirmed"),
        ("< 2", "refuted"), ("== 2", "confirmed"), ("2 .. 3", "confirmed"), ("2.001 .. 3", "refuted"),
    ],
)  # fmt: skip
def test_a_number_at_the_threshold_and_beside_it(condition, expected):
    judged = verdict("median_us(a) / median_us(b)", condition)
    assert (judged.verdict, judged.measured, judged.reason) == (expected, 2.0, "")
    assert judged.evidence == "median_us(a) = 2 us; median_us(b) = 1 us"


def noisy(measure, condition, a_us, b_us, floor):
    """Judges a claim about two variants with these times and this floor between them."""
    rows = [
        {
            "family": "f",
            "variant": v,
            "case": "1",
            "status": "ok",
            "reason": "",
            "ratio_to_baseline": a_us / b_us,
            "baseline": "b",
            "median_us": us,
        }
        for v, us in {"a": a_us, "b": b_us}.items()
    ]
    none = pd.DataFrame(columns=["family", "variant", "case", "metric", "value", "kernel", "launch", "unit"])
    data = {"id": "X1", "claim": "c", "source": "s", "confirmed_if": condition, "measure": measure}
    claim = make_claim(ClaimEntry(**data), "f", "1", "family.yaml")
    of_both = Quantities(pd.DataFrame(rows), none, floors_of("ab", floor))
    return claims.judge(claim, {}, of_both, GPU, "NVIDIA H200")


def test_a_claim_whose_threshold_lies_inside_the_noise_is_neither_confirmed_nor_refuted():
    ratio = "median_us(a) / median_us(b)"
    for condition in (">= 1.005", ">= 0.996"):
        judged = noisy(ratio, condition, 10.0, 10.0, 0.01)
        assert (judged.verdict, judged.margin) == ("within_noise", "")
        assert judged.measured == 1.0
    wide = noisy(ratio, ">= 1.25", 20.4, 10.0, 1.0)
    assert (wide.verdict, wide.margin) == ("within_noise", ""), "far beyond the bound, but not for sure"
    clear = noisy(ratio, ">= 1.02", 10.0, 10.0, 0.01)
    assert (clear.verdict, clear.margin) == ("refuted", "")


@pytest.mark.parametrize("measure", ["median_us(a) / median_us(b)", "ratio_to_baseline(a)"])
@pytest.mark.parametrize(
    ("slower_us", "faster_us", "expected"),
    [
        (10.09, 10.0, "within_noise"),
        (10.11, 10.0, "confirmed"),
        (10.0, 10.09, "within_noise"),
        (10.0, 10.11, "refuted"),
    ],
)
def test_a_claim_that_one_is_faster_is_judged_as_the_two_are_compared(
    measure, slower_us, faster_us, expected
):
    """The floor is 1 %."""
    assert noisy(measure, "> 1", slower_us, faster_us, 0.01).verdict == expected


def test_of_a_sum_the_noises_add_up_in_quadrature():
    """By hand: each time deviates by 0.2276 %, their sum of 20 us by 0.0322 us, of which 3.09 are 0.0995 us."""
    for bound, expected in ((20.09, "within_noise"), (20.11, "refuted")):
        assert noisy("median_us(a) + median_us(b)", f">= {bound}", 10.0, 10.0, 0.01).verdict == expected
    assert noisy("median_us(a) - median_us(b)", "> 0", 10.05, 10.0, 0.01).verdict == "within_noise"


def test_the_floors_of_the_campaign_decide_its_claims(tmp_path):
    for name in ("measurements", "metrics", "gpus", "floors"):
        shutil.copy(TABLES / f"{name}.parquet", tmp_path)
    times = pd.read_parquet(TABLES / "measurements.parquet")
    rows = [
        {
            **{
                key: row[key]
                for key in ("family", "variant", "case", "gpu", "gpu_name", "origin", "campaign")
            },
            **rest,
        }
        for row in times.to_dict("records")
        for rest in [{"regime": "rest", "processes": 3, "deviation": 1.0, "freedom": 100.0, "groups": 0.0}]
    ]
    before = {row["id"]: row["verdict"] for row in claims.judge_all(FAMILIES, answers.read(tmp_path))}
    files.write_table(rows, FLOORS, tmp_path / "floors")
    after = {row["id"]: row["verdict"] for row in claims.judge_all(FAMILIES, answers.read(tmp_path))}
    assert (before["B1"], after["B1"]) == (
        "confirmed",
        "within_noise",
    )  # 11.8 times as fast, but the deviation is 2.7-fold
    assert after["B4a"] == before["B4a"] == "confirmed"  # a count has no noise


@pytest.mark.parametrize(
    ("condition", "margin"),
    [
        (">= 1.25", "exceeded"),
        (">= 2", ""),
        ("> 1", ""),
        ("<= 4.2", "exceeded"),
        ("1 .. 4", ""),
        ("<= 2.5", ""),
    ],
)
def test_a_speed_far_beyond_the_bound_exceeds_it(condition, margin):
    ratio = "median_us(a) / median_us(b)"
    judged = noisy(ratio, condition, 20.4, 10.0, 0.01)
    assert (judged.verdict, judged.margin) == ("confirmed", margin)


@pytest.mark.parametrize(("times", "margin"), [((12.4, 10.0), "exceeded"), ((10.7, 10.0), "")])
def test_a_small_gain_is_exceeded_by_one_and_a_half_times_the_published_one(times, margin):
    """1.05x is published and the condition asks for half of that gain: 1.24x exceeds it, 1.07x does not."""
    judged = noisy("median_us(a) / median_us(b)", ">= 1.025", *times, 0.01)
    assert (judged.verdict, judged.margin) == ("confirmed", margin)


def test_unit_names_and_opcodes():
    assert verdict("median_us(a)", "> 0").unit == "us"
    assert verdict("median_us(a) / n", "> 0").unit == ""
    judged = verdict("median_us(a) * n + sms", "== 148")
    assert judged.verdict == "confirmed"
    assert "n = 8; sms = 132" in judged.evidence
    counted = [verdict(f'sass(a, "{o}")', "== 0").measured for o in ("LDG", "LDG.E.128", "STG")]
    assert counted == [3, 2, 0]
    assert verdict('sass(b, "LDG")', "== 0").verdict == "not_measurable"


@pytest.mark.parametrize(
    ("measure", "why"),
    [
        ("median_us(c)", "c was not measured at 1"),
        ("median_us(bad)", "bad at 1: wrong: all zero"),
        ("dram_bytes(a)", "it was not captured"),
        ("ipc(a)", "ipc: denied: no"),
        ("hot_us(a)", "a at 1 has no hot_us"),
        ("median_us(a) / l2_mib", "l2_mib of this GPU is not known"),
        ('median_us(other.a, "1")', "a was not measured at 1"),
        ("max(median_us(a), median_us(c))", "c was not measured at 1"),
        ("median_us(a) / l2_bytes(a)", "no value for these numbers"),
        ("10.0 ** (200 * median_us(a))", "no value for these numbers"),
        ("(-1) ** (median_us(b) / 2)", "no value for these numbers"),
    ],
)
def test_without_a_number_there_is_no_verdict_but_a_reason(measure, why):
    judged = verdict(measure, "> 0")
    assert judged.verdict == "not_measurable"
    assert math.isnan(judged.measured)
    assert why in judged.reason


def test_the_other_family_is_named_beside_its_numbers():
    judged = verdict('median_us(a) + median_us(g.a, "2")', "> 0")
    assert judged.evidence == "median_us(f.a) = 2 us"
    assert judged.cases == ("1",), "the other number is not known"


def test_the_opcode_of_a_count_is_no_case():
    assert verdict('sass(a, "LDG.E") * median_us(a)', "> 0").cases == ("1",)
    assert verdict('sass(a, "LDG.E")', "> 0").cases == ()


def test_a_verdict_repeats_what_the_tables_remark_on_its_rows(tmp_path):
    for name in ("measurements", "metrics", "gpus", "floors"):
        table = pd.read_parquet(TABLES / f"{name}.parquet")
        if name == "measurements":
            table["remarks"] = table["remarks"].where(table["variant"] != "gmem_coalesced", "")
            table.loc[table["variant"] == "naive", "remarks"] = '[{"code": "earlier_source"}]'
        table.to_parquet(tmp_path / f"{name}.parquet")
    rows = {row["id"]: row for row in claims.judge_all(FAMILIES, answers.read(tmp_path))}
    assert rows["B1"]["verdict"] == "confirmed"
    assert rows["B1"]["reason"] == "note on naive: recorded for an earlier source"
    assert rows["B9a"]["reason"] == ""


def test_the_kernels_of_a_launch_are_counted():
    assert verdict('kernels_per_launch(a, "1")', "== 2").verdict == "confirmed"
    unknown = verdict("kernels_per_launch(b)", "== 2")
    assert (unknown.verdict, unknown.reason) == (
        "not_measurable",
        "b at 1: its kernels were not captured",
    )


def test_a_search_that_did_not_take_place_is_not_judged():
    judged = verdict("median_us(default)", "> 1", default=3.0)
    assert (judged.verdict, judged.measured) == ("not_measurable", 3.0)
    assert judged.reason == "default has default parameters: there is no search on this GPU"


def test_many_reasons_are_cut():
    judged = verdict("median_us(c) + median_us(d) + median_us(e) + median_us(g) + median_us(h)", "> 0")
    assert judged.reason.count(";") == 2
    assert judged.reason.endswith("and 3 more")


def test_a_claim_that_is_not_judged_shows_its_number():
    judged = verdict("median_us(a)", not_judged="an opinion")
    assert (judged.verdict, judged.measured, judged.reason) == ("not_measurable", 2.0, "an opinion")
    assert verdict("median_us(c)", not_judged="an opinion").reason == "an opinion; c was not measured at 1"


@pytest.mark.parametrize(
    ("about", "expected", "said", "reason"),
    [
        ("an H200", "refuted", "", ""),
        ("an H100", "not_measurable", "an H100", "about an H100"),
        ("PCIe 5", "not_measurable", "PCIe 5", "about PCIe 5"),
    ],
)
def test_a_gpus_figure_is_judged_on_that_gpu_and_shown_beside_ours_elsewhere(about, expected, said, reason):
    judged = verdict("median_us(a)", ">= 3", about=about)
    assert (judged.verdict, judged.measured) == (expected, 2.0)
    assert (judged.about, judged.reason) == (said, reason)


@pytest.mark.parametrize(
    ("about", "reason"), [("an H100", "about an H100: an opinion"), ("an H200", "an opinion")]
)
def test_a_reason_not_to_judge_holds_on_every_gpu(about, reason):
    judged = verdict("median_us(a)", not_judged="an opinion", about=about)
    assert (judged.verdict, judged.reason) == ("not_measurable", reason)


@pytest.fixture(scope="module")
def recorded():
    return {row["id"]: row for row in claims.judge_all({"sgemm": FAMILIES["sgemm"]}, answers.read(TABLES))}


# By hand from results/recorded/h200/tables: 275814.06 / 23921.82 us; 2 * 16.5 - 1; 4.33466e9 / 8.46148e9 B;
# 2.68435e9 + 0.13422e9 of 6.60079e9; 16435.59 / 8489.09 us; 134217728 * 32 / 4096^2 of 2 * 4096; 397.246e6 B;
# 2.68435e9 * 32 / 4096^2 of 2 * 4096, since 8 of 40 loads read 4 elements; 32 of 48 warps.
@pytest.mark.parametrize(
    ("name", "expected", "measured"),
    [
        ("B1", "confirmed", 11.530), ("B4a", "confirmed", 32), ("B6b", "refuted", 0.51228),
        ("B8a", "refuted", 42.701), ("B9a", "refuted", 1.9361), ("B10a", "confirmed", 1),
        ("B10b", "confirmed", 1), ("B20", "not_measurable", 397.25), ("B3", "confirmed", 0),
        ("B7c", "confirmed", 66.667), ("B18b", "confirmed", 2),
    ],
)  # fmt: skip
def test_verdicts_of_the_recorded_campaign(recorded, name, expected, measured):
    row = recorded[name]
    assert row["verdict"] == expected
    assert row["measured"] == pytest.approx(measured, rel=1e-4)
    assert (row["gpu_name"], row["origin"]) == ("NVIDIA H200", "live")


def test_rows_fit_the_table_and_families_without_claims_have_none(recorded):
    frame = files.as_frame(list(recorded.values()), CLAIMS, "claims")
    assert len(frame) == len(FAMILIES["sgemm"].claims)
    bare = structs.replace(FAMILIES["sgemm"], claims=())
    assert claims.judge_all({"sgemm": bare}, answers.read(TABLES)) == []
    assert claims.judge_all({}, answers.read(TABLES)) == []


def test_an_empty_table_of_claims_can_be_read_back(tmp_path):
    for name in view.TABLES:
        shutil.copy(TABLES / f"{name}.parquet", tmp_path)
    for suffix in ("csv", "parquet"):
        files.write_table([], CLAIMS, tmp_path / "claims")
        assert view.load(tmp_path, "sgemm").claims.empty
        (tmp_path / f"claims.{suffix}").unlink()
    assert view.load(tmp_path, "sgemm").claims.empty


def test_the_command_shows_a_refuted_claim_and_succeeds(capsys):
    assert warplog(["claims", str(TABLES), "--family", "sgemm"]) == 0
    shown = capsys.readouterr().out
    assert "sgemm D13a [4096]: " in shown
    assert "  REFUTED  11.22 %  (confirmed if 0.5 .. 3.5)" in shown
    assert "  kernels: naive = gmem_coalesced\n" in shown
    assert warplog(["claims", str(TABLES), "--family", "sgm"]) == 1
    assert "did you mean 'sgemm'" in capsys.readouterr().err


@pytest.mark.parametrize("family", FAMILIES)
def test_every_claim_of_ours_can_be_judged_one_day(family):
    """Its variants and cases exist in every family it names, and its counters are captured there."""
    claims = FAMILIES[family].claims
    for term in (term for claim in claims if claim.formula for term in claim.formula.terms.values()):
        other = FAMILIES[term.family]
        other.variant(term.variant)
        if term.quantity == SASS:
            continue
        assert term.case in other.cases, term
        if term.quantity == KERNELS_PER_LAUNCH:
            continue
        metric = METRICS.get(term.quantity.removeprefix("total_"))
        if term.quantity not in MEASUREMENTS and metric.counters:
            assert term.case in other.profile_cases, f"{term} is captured at {other.profile_cases}"


ANOTHER_GPU = re.compile(r"\b(A\d{4}|[AHLV]\d{2,3}|RTX \d+|PCIe \d)\b")


@pytest.mark.parametrize("family", FAMILIES)
def test_of_figures_of_another_gpu_only_ratios_between_kernels_are_judged(family):
    for claim in FAMILIES[family].claims:
        if claim.about or not ANOTHER_GPU.search(claim.published) or not claim.confirmed_if:
            assert not claim.about or claim.published, claim.id
            continue
        terms = claim.formula.terms.values()
        libraries = {bool(FAMILIES[term.family].variant(term.variant).library) for term in terms}
        assert re.match("[x%]", claim.unit), f"{claim.id}: an absolute figure: name the GPU in `about`"
        assert len(libraries) == 1, f"{claim.id}: a share of a library: name the GPU in `about`"
        assert "ratio_to_baseline" not in claim.measure, (
            f"{claim.id}: a share of a library: name the GPU in `about`"
        )


def test_families_have_claims():
    assert {f.name for f in FAMILIES.values() if f.claims} >= {"sgemm", "bf16_gemm", "reduction", "histogram"}


def drawn(rows, family="sgemm", settings=None):
    loaded = view.load(TABLES, family)
    loaded = dataclasses.replace(loaded, claims=files.as_frame(rows, CLAIMS, "claims"))
    module = figures.module("claims")
    look = style.look(loaded, settings) if settings else style.look(loaded)
    return module.draw(module.data(loaded), look)


def words(picture):
    return [text.get_text() for axes in picture.axes for text in axes.texts]


@pytest.mark.filterwarnings("error:.*constrained_layout.*")
def test_the_figure_shows_every_claim_with_its_verdict(recorded, tmp_path):
    picture = drawn(list(recorded.values()))
    number_of = counts(row["verdict"] for row in recorded.values())
    assert f"{number_of['refuted']} refuted" in picture.get_suptitle()
    shown = words(picture)
    assert set(recorded) <= set(shown)
    assert shown.count("✗") == number_of["refuted"]
    assert {"11.5 x (exceeded)", ">= 5.4x", "397 MB"} <= set(shown)
    style.save(picture, tmp_path / "x.png", tmp_path / "x.svg")
    box = picture.get_tightbbox()
    assert box.x1 < picture.get_figwidth() + 0.05


def test_the_figure_cuts_neither_claims_nor_conditions(recorded):
    long = {"claim": "A claim that is much longer than its column. " * 4, "condition": "0.89975 .. 1.10025"}
    picture = drawn([row | long for row in recorded.values()])
    assert not [text for text in words(picture) if "…" in text]
    shown = [text for text in words(picture) if text.startswith("0.89975 .. 1.10025")]
    assert len(shown) == len(recorded)
    picture.draw_without_rendering()
    assert max(text.get_window_extent().x1 for text in picture.axes[0].texts) <= picture.bbox.x1


def test_in_one_column_every_claim_ends_within_its_coloured_row(recorded):
    picture = drawn(
        list(recorded.values()), settings=settings_of(FigureSettings(style="paper", width_in=3.3))
    )
    with style.theme(settings_of(FigureSettings(style="paper", width_in=3.3))):
        picture.draw_without_rendering()
        (axes,) = picture.axes
        assert max(text.get_window_extent().x1 for text in axes.texts) <= axes.bbox.x1


def test_the_figure_without_claims_says_so():
    assert "this family has no claims" in drawn([]).get_suptitle()
    assert words(drawn([])) == ["id", "claim", "case", "measured", "confirmed if"]


@pytest.mark.filterwarnings("error:.*constrained_layout.*")
def test_the_figure_takes_hostile_text(recorded, tmp_path):
    row = recorded["B1"] | {"claim": "$\\frac{$ <b>&\x1b[31m\n" + "long " * 100, "published": "x" * 200}
    row |= {"id": "A" * 16, "condition": "-1.000000000e-10 .. 1.000000000e+10", "unit": "wavefront/request"}
    picture = drawn([row])
    style.save(picture, tmp_path / "x.png", tmp_path / "x.svg")
    assert any(text.startswith("$\\frac{$ <b>& [31m") for text in words(picture))


def test_show_says_that_a_claim_is_about_another_gpu():
    out = io.StringIO()
    row = dict.fromkeys(("condition", "published", "evidence"), "")
    row |= {
        "family": "f",
        "id": "X",
        "claim": "c",
        "verdict": "not_measurable",
        "measured": 37.0,
        "unit": "MB",
    }
    claims.show([row | {"about": "an A6000", "reason": "about an A6000: depends on its L2"}], out)
    assert out.getvalue().splitlines()[1] == "  NOT JUDGED: ABOUT AN A6000  37 MB"


def test_show_says_what_is_missing():
    out = io.StringIO()
    row = dict.fromkeys(("unit", "published", "evidence"), "")
    row |= {"family": "f", "id": "X", "claim": "c", "verdict": "not_measurable", "measured": math.nan}
    row |= {"condition": "> 1", "about": "", "reason": "b was not measured"}
    claims.show([row], out)
    assert out.getvalue() == "f X: c\n  NOT MEASURABLE  (confirmed if > 1)\n  reason: b was not measured\n"
