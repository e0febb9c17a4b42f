"""What pages, `explain` and LaTeX say of steps that the model of mechanisms argues, and of those that it cannot."""

import re
import sys
from dataclasses import replace

import pytest
from worklog_pages import RECORDED, Page, uncharted

import made_up_mechanisms as made
from warplog import worklog
from warplog.analysis.mechanisms.causes import RESTS_ON
from warplog.analysis.mechanisms.forecasts import MENDS
from warplog.worklog import explain
from warplog.worklog.audit import audit
from warplog.worklog.texts import words


@pytest.fixture(scope="module")
def argued(recorded):
    """The tables of the small campaign, of which a model knows six steps and what would help one variant."""
    return replace(recorded, **made.tables())


@pytest.fixture(scope="module")
def lines(argued):
    """What `explain` prints of each variant: its line, and those below it."""
    parts = re.split(r"^- \*\*(\w+)\*\*: ", explain.markdown(argued), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_a_predicted_step_names_its_mechanism_its_count_and_both_savings(lines):
    head, *others = lines["gmem_coalesced"].splitlines()
    assert head.endswith(
        ": lanes access neighbouring addresses (sectors per global load 16.5 → 2.5)."
        " Time saved: predicted 250.00 ms (150.00 ms to 350.00 ms), measured 251.90 ms."
    )
    assert "Why it is faster" not in "".join(others), "stalls and use of units are no reasons"


def test_a_loss_has_its_mechanism(lines):
    assert ": more barriers (BAR instructions 0 → " in lines["smem_tiled"]
    assert (
        "Time saved (minus is a loss): predicted −500.0 µs (−700.0 µs to −300.0 µs), measured −510.0 µs."
        in lines["smem_tiled"]
    )


def test_kernels_beside_the_longest_are_named_as_such(argued):
    mechanisms = argued.mechanisms.copy()
    told = {"mechanism": "launches", "word": "accounted", "rests_on": "steps/others_us"}
    mechanisms.loc[mechanisms["variant"] == "smem_tiled", list(told)] = list(told.values())
    text = explain.markdown(replace(argued, mechanisms=mechanisms))
    assert (
        ": the kernels beside the longest one take more time. Accounted for afterwards, not predicted: as Nsight"
        " Compute timed them. Time saved"
    ) in text


@pytest.mark.parametrize(
    ("also", "said"),
    [
        ("wide_accesses", "), and wider accesses. Time saved"),
        ("idle_sms,wide_accesses", "), fewer idle SMs, and wider accesses. Time saved"),
    ],
)
def test_other_mechanisms_of_a_step_follow_the_first_and_its_count(argued, also, said):
    mechanisms = argued.mechanisms.copy()
    mechanisms.loc[mechanisms["variant"] == "gmem_coalesced", "also"] = also
    text = explain.markdown(replace(argued, mechanisms=mechanisms))
    assert f": lanes access neighbouring addresses (sectors per global load 16.5 → 2.5{said}" in text
    mechanisms["measured_us"] *= -1
    text = explain.markdown(replace(argued, mechanisms=mechanisms))
    assert said.replace("wider", "narrower").replace("fewer", "more").replace("saved", "saved (minus") in text


def test_a_small_difference_as_predicted_says_that_its_mechanism_is_not_named(lines, argued):
    assert (
        "Time saved: predicted 150.0 µs (110.0 µs to 190.0 µs), measured 120.0 µs."
        " Of differences under 5 %, the model names no mechanism."
    ) in lines["warptile"]
    assert "Counters that changed with the gain: " in lines["warptile"]


def test_a_queue_that_shared_memory_fills_as_well_is_called_so(argued):
    mechanisms = argued.mechanisms.copy()
    mechanisms.loc[mechanisms["variant"] == "blocktile_1d", "rests_on"] += ",accesses/space"
    text = explain.markdown(replace(argued, mechanisms=mechanisms))
    assert ": fewer accesses to shared memory by generic addresses. Accounted for afterwards" in text
    assert ", which these pass as well, takes" in text


def test_what_is_accounted_for_says_by_which_wait_and_that_it_was_not_predicted(lines, argued):
    assert (
        ": loads overlap more with arithmetic. Accounted for afterwards, not predicted: waiting for "
        in lines["blocktile_1d"]
    )
    assert re.search(
        r"waiting for [^:]* takes [\d.]+ ms → [\d.]+ ms\. Time saved \(minus is a loss\):"
        r" predicted −500\.0 µs, measured 7\.952 ms\.",
        lines["blocktile_1d"],
    )


def test_what_is_not_in_evidence_says_what_would_decide(lines):
    assert (
        "Time saved (minus is a loss): predicted −500.0 µs (−700.0 µs to −300.0 µs), measured −510.0 µs."
        " The mechanism is not in evidence: a timeline would decide."
    ) in lines["blocktile_2d"]
    assert "Counters that changed with the gain: " in lines["blocktile_2d"]


@pytest.mark.parametrize("word", ["SAME", "AMBIGUOUS"])
def test_a_difference_that_was_predicted_but_not_measured_has_no_mechanism_to_look_for(argued, word):
    verdicts = argued.verdicts.copy()
    verdicts.loc[verdicts["variant"] == "blocktile_2d", "word"] = word
    text = explain.markdown(replace(argued, verdicts=verdicts))
    (said,) = re.findall(r"^- \*\*blocktile_2d\*\*: .*", text, flags=re.MULTILINE)
    assert "measured −510.0 µs. The predicted difference did not show." in said
    assert "not in evidence" not in said


def test_a_step_that_the_model_cannot_predict_is_explained_by_counters_as_without_it(lines, recorded):
    without = explain.markdown(recorded)
    kept = lines["vectorized"].partition("  - What would help next")[0]
    assert kept in without
    assert ": instructions 2.55 G → 2.45 G, " in kept


def test_the_three_best_forecasts_are_listed_with_interval_line_and_the_bound_after_them(lines):
    *_, last = lines["vectorized"].splitlines()
    assert last == (
        "  - What would help next: no bank conflicts at vectorized.cu:76: 1.33x as fast (1.20x to 1.50x), then bound"
        " by the issue slots; a full last wave of blocks: 1.10x as fast (at least 1.05x), then bound by L1 and shared"
        " memory; no barriers at vectorized.cu:76: 1.05x as fast (1.20x to 1.50x), then bound by the issue slots."
    )


def test_a_page_says_the_same_and_every_number_is_a_cell(argued, tmp_path, capsys):
    page = uncharted(argued)
    source = worklog.html(page)
    text = Page(source).text
    for said in (
        "lanes access neighbouring addresses ( sectors per global load 16.5 → 2.5 )",
        "What would help next no bank conflicts",
        "Predicted saving, unit by unit",
        "L1 and shared memory 260.00 ms 9.000 ms 249.00 ms L2 100.00 ms 90.00 ms 7.000 ms The time that",
    ):
        assert said.replace(" ", "") in text.replace(" ", ""), said
    (tmp_path / "worklog").mkdir()
    (tmp_path / "worklog" / "sgemm.html").write_text(source)
    (tmp_path / "tables").mkdir()
    own = made.tables()
    for path in (RECORDED / "tables").iterdir():
        if path.stem not in own:
            (tmp_path / "tables" / path.name).symlink_to(path)
    for name, table in own.items():
        table.to_parquet(tmp_path / "tables" / f"{name}.parquet", index=False)
    assert audit(tmp_path, sys.stdout).passed, capsys.readouterr().out
    assert "sgemm/warptile/4096/least_pct" in source
    assert "- no bank conflicts at " in worklog.markdown(page, tmp_path)
    ladder = worklog.latex(page)["ladder"].splitlines()
    assert any("coalesced" in line and " & lanes access neighbouring addresses & " in line for line in ladder)
    assert any("2d" in line and " & not in evidence & " in line for line in ladder)


def test_every_mechanism_and_what_it_rests_on_has_words():
    said = words(str)
    assert {*RESTS_ON, *MENDS, "launches", "dram_bytes", "register_ports", "store_overlap"} <= set(
        said.MECHANISMS
    )
    metrics = {name for names in RESTS_ON.values() for name in names if "/" not in name}
    assert not {name for name in metrics if said.metric(name) == name}
    spoken = [*said.BUSY.values(), *(text for texts in said.MECHANISMS.values() for text in texts)]
    assert not [text for text in spoken if re.search(r"\b\d", text)], "digits are cells of tables"
