"""On every chip, campaigns request only counters that it has, and a metric without a value says what the chip lacks."""

import json

import pytest
from tools import chip_counters
from tools.chip_counters import CHIPS, LIST, OF_NCU, base

from captures import captured, needs_captures
from warplog.metrics import METRICS, counters_to_collect, evaluate, evaluate_any
from warplog.metrics.counters import RENAMED, supports
from warplog.parsers.ncu import report

LISTED = json.loads(LIST.read_text())
SOME = {name: chips.split() for name, chips in LISTED["some"].items()}
GMMA = {"stall_gmma_cycles_per_issue", "stall_gmma_pct"}
IMC_MISS = {"stall_imc_miss_cycles_per_issue", "stall_imc_miss_pct"}
TEX_THROTTLE = {"stall_tex_throttle_cycles_per_issue", "stall_tex_throttle_pct"}
READ_AND_WRITTEN = {"dram_bytes_read", "dram_bytes_written"}
DRAM = {*READ_AND_WRITTEN, "dram_bytes", "dram_gbytes_per_s", "dram_throughput_pct"}
DRAM |= {"arithmetic_intensity_flop_per_byte"}
WITHOUT = {
    "TU102": GMMA, "TU116": GMMA, "GA100": GMMA, "GA102": GMMA, "GA10B": GMMA | DRAM, "AD102": GMMA, "GH100": set(),
    "GB100": GMMA | IMC_MISS, "GB110": GMMA | IMC_MISS, "GR100": GMMA | IMC_MISS | TEX_THROTTLE | READ_AND_WRITTEN,
    "GB10B": GMMA | IMC_MISS | DRAM, "GB202": GMMA | IMC_MISS | READ_AND_WRITTEN, "GB20B": GMMA | IMC_MISS | DRAM,
}  # fmt: skip
WITH_TENSOR_MEMORY = {"GB100", "GB110", "GR100", "GB10B"}


def has(chip, counter):
    return chip in SOME.get(base(counter), CHIPS)


def test_the_list_names_every_counter_of_the_registry():
    assert sorted([*LISTED["everywhere"], *SOME]) == chip_counters.registered()


@pytest.mark.skipif(not chip_counters.LIBRARY.is_file(), reason="the package ncu-report has no library here")
def test_the_library_of_the_installed_ncu_report_gives_the_same_list():
    assert chip_counters.listing() == LISTED, "python tests/tools/chip_counters.py"


@pytest.mark.skipif(not chip_counters.LIBRARY.is_file(), reason="the package ncu-report has no library here")
@pytest.mark.parametrize("chip", CHIPS)
def test_the_lean_set_is_one_session_of_few_passes(chip):
    """ncu adds two passes with instrumented code, for opcodes and for the wavefronts of shared memory."""
    of_chip = chip_counters.passes(chip, counters_to_collect("lean", CHIPS[chip]))
    assert of_chip + 2 <= 15


@pytest.mark.parametrize("chip", CHIPS)
def test_a_counter_is_requested_only_where_the_chip_has_it(chip):
    requested = counters_to_collect("full", CHIPS[chip])
    of_chip = [name for name in requested if not name.startswith(OF_NCU)]
    assert [name for name in of_chip if not has(chip, name)] == []
    assert len(of_chip) > 60


@pytest.mark.parametrize("name", SOME)
def test_a_counter_of_some_chips_is_known_to_be_so(name):
    """A compute capability has a counter if all of its chips do."""
    counter = next(
        c for m in METRICS.values() for s in m.counters for c in s.strip("?").split("|") if base(c) == name
    )
    for capability in set(CHIPS.values()):
        chips = [chip for chip, of_chip in CHIPS.items() if of_chip == capability]
        assert supports(counter, capability) == all(has(chip, counter) for chip in chips), capability


@pytest.mark.parametrize("chip", CHIPS)
def test_every_metric_has_a_value_or_says_what_the_chip_lacks(chip):
    capability = CHIPS[chip]
    counters = (*counters_to_collect("full", capability), "profiler__replayer_passes")
    values = evaluate(dict.fromkeys(counters, 1.0), capability)
    reasons = {value.metric: value.reason for value in values if value.value is None}
    assert set(reasons) == WITHOUT[chip]
    lacks = f"a GPU of compute capability {capability[0]}.{capability[1]} has no counter "
    differs = "campaigns collect only the sum of reads and writes"
    renamed = any(supports(name, capability) for name in RENAMED)
    for metric, reason in reasons.items():
        assert (differs if renamed and metric in READ_AND_WRITTEN else lacks) in reason
    measured = {value.metric for value in values if value.metric.startswith(("tensor_memory_", "mma_"))}
    assert len(measured) == (9 if chip in WITH_TENSOR_MEMORY else 0)


@needs_captures
@pytest.mark.parametrize("path", captured(".ncu-rep"), ids=lambda path: path.stem)
def test_counters_in_reports_of_others_are_those_that_their_chip_is_said_to_have(path):
    for launch in report.read(path).launches:
        values = evaluate_any(launch.counters, launch.compute_capability)
        lacking = [value.reason for value in values if "a GPU of compute capability" in value.reason]
        assert not [name for name in launch.counters for reason in lacking if name in reason]
        assert all(value.reason for value in values if value.value is None)
