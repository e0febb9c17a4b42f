"""The columns about the kernel of a variant are those of the kernel that was launched."""

from dataclasses import replace
from pathlib import Path

import pytest

from host_family import make_family
from warplog.tables.launched import launched_columns


def kernel(name: str, registers: int, instructions: int, spills: int | None = 0) -> dict:
    found = {"kernel": name, "registers_per_thread": registers, "static_shared_bytes": 16 * registers}
    known = {} if spills is None else {"spill_store_bytes": spills, "spill_load_bytes": 2 * spills}
    return {**found, **known, "sass_instructions": instructions}


BUILT = [
    kernel("void tile<64, false>(float const*, int)", 40, 700),
    kernel("void tile<128, true>(float const*, int)", 64, 500, spills=4),
    kernel("(anonymous namespace)::reduce(float*)", 16, 900, spills=8),
]


def rows(case: str, tool: str, *launches: tuple[str, float, int]) -> list[dict]:
    found = []
    for number, (name, us, registers) in enumerate(launches):
        key = {"case": case, "kernel": name, "launch": number, "tool": tool, "status": "ok"}
        found.append({**key, "metric": "duration_us", "value": us})
        found.append({**key, "metric": "registers_per_thread", "value": registers})
    return found


@pytest.fixture
def family(tmp_path: Path):
    return replace(make_family(tmp_path), profile_cases=("64", "1000"), headline_case="64")


def test_without_a_capture_it_is_the_kernel_with_most_instructions(family) -> None:
    assert launched_columns(family, BUILT, []) == {
        "kernel": "(anonymous namespace)::reduce(float*)",
        "registers_per_thread": 16,
        "static_shared_bytes": 256,
        "spill_bytes": 24,
    }


def test_the_capture_names_the_longest_kernel_and_its_template_arguments(family) -> None:
    name = "void tile<(int)128, (bool)1>(const float *, int)"
    captured = rows("64", "ncu", ("void reduce(float *)", 2.0, 16), (name, 9.0, 64))
    captured += rows("1000", "ncu", ("void reduce(float *)", 99.0, 16))
    found = launched_columns(family, BUILT, captured)
    assert (found["kernel"], found["registers_per_thread"], found["spill_bytes"]) == (name, 64, 12)


@pytest.mark.parametrize(("registers", "expected"), [(40, 40), (64, 64), (99, 40)])
def test_an_instance_whose_arguments_cannot_be_read_is_told_by_its_registers(
    family, registers: int, expected: int
) -> None:
    captured = rows("64", "nsys", ("tile", 1.0, registers))
    assert launched_columns(family, BUILT, captured)["registers_per_thread"] == expected


def test_a_kernel_of_a_library_has_a_name_and_no_resources(family) -> None:
    found = launched_columns(family, BUILT, rows("64", "ncu", ("sm90_xmma_gemm", 1.0, 128)))
    assert found == {
        "kernel": "sm90_xmma_gemm",
        "registers_per_thread": None,
        "static_shared_bytes": None,
        "spill_bytes": None,
    }
    assert launched_columns(family, [], [])["kernel"] == ""


def test_spills_that_are_unknown_are_empty_instead_of_zero(family) -> None:
    assert launched_columns(family, [kernel("k(int)", 8, 9, spills=None)], [])["spill_bytes"] is None
