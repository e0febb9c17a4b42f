"""The columns about the kernel of a variant are those of the kernel that was launched."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import made_up_records
from host_family import make_family
from made_up_records import metric
from warplog.records.build import KernelCode
from warplog.records.extract import Extract, MetricRow
from warplog.tables.launched import launched_columns


def kernel(name: str, registers: int, instructions: int, spills: int | None = 0) -> KernelCode:
    return made_up_records.kernel(
        name,
        registers_per_thread=registers,
        static_shared_bytes=16 * registers,
        spill_store_bytes=spills,
        spill_load_bytes=spills if spills is None else 2 * spills,
        sass_instructions=instructions,
    )


BUILT = [
    kernel("void tile<64, false>(float const*, int)", 40, 700),
    kernel("void tile<128, true>(float const*, int)", 64, 500, spills=4),
    kernel("(anonymous namespace)::reduce(float*)", 16, 900, spills=8),
]


def captured(*captures: tuple[str, str, tuple[tuple[str, float, int], ...]]) -> Extract:
    """Returns an extract record with (name, us, registers) of the launches of each (case, tool)."""
    rows = [row for case, tool, launches in captures for row in made(case, tool, launches)]
    kernels = [made_up_records.launched(row.kernel) for row in rows if "-to-" not in row.kernel]
    return made_up_records.extract(rows, kernels)


def made(case: str, tool: str, launches: tuple[tuple[str, float, int], ...]) -> list[MetricRow]:
    return [
        metric(name, case, kernel, number, value, tool)
        for number, (kernel, us, registers) in enumerate(launches)
        for name, value in (("duration_us", us), ("registers_per_thread", registers))
    ]


@pytest.fixture
def family(tmp_path: Path):
    return replace(make_family(tmp_path), profile_cases=("64", "1000"), headline_case="64")


def test_without_a_capture_it_is_the_kernel_with_most_instructions(family) -> None:
    assert launched_columns(family, BUILT, None) == {
        "kernel": "(anonymous namespace)::reduce(float*)",
        "registers_per_thread": 16,
        "static_shared_bytes": 256,
        "spill_bytes": 24,
    }


def test_the_capture_names_the_longest_kernel_and_its_template_arguments(family) -> None:
    name = "void tile<(int)128, (bool)1>(const float *, int)"
    reduce = "void <unnamed>::reduce(float *)"
    both = ("64", "ncu", ((reduce, 2.0, 16), (name, 9.0, 64))), ("1000", "ncu", ((reduce, 99.0, 16),))
    columns = launched_columns(family, BUILT, captured(*both))
    assert (columns["kernel"], columns["registers_per_thread"], columns["spill_bytes"]) == (name, 64, 12)


@pytest.mark.parametrize(("registers", "expected"), [(40, 40), (64, 64), (99, 40)])
def test_an_instance_whose_arguments_cannot_be_read_is_told_by_its_registers(
    family, registers: int, expected: int
) -> None:
    columns = launched_columns(family, BUILT, captured(("64", "nsys", (("tile", 1.0, registers),))))
    assert columns["registers_per_thread"] == expected


def test_a_kernel_in_an_anonymous_namespace_is_found_and_a_copy_is_no_kernel(family) -> None:
    launches = ("Host-to-Device", 90.0, 0), ("<unnamed>::reduce(float *)", 2.0, 16)
    columns = launched_columns(family, BUILT, captured(("1000", "nsys", launches)))
    assert (columns["kernel"], columns["spill_bytes"]) == ("<unnamed>::reduce(float *)", 24)


def test_ncu_reports_at_least_sixteen_registers(family) -> None:
    built = [kernel("k<1>(int)", 10, 50), kernel("k<2>(int)", 20, 90)]
    columns = launched_columns(family, built, captured(("64", "ncu", (("k", 1.0, 16),))))
    assert columns["registers_per_thread"] == 10


def test_a_kernel_of_a_library_has_a_name_and_no_resources(family) -> None:
    columns = launched_columns(family, BUILT, captured(("64", "ncu", (("sm90_xmma_gemm", 1.0, 128),))))
    assert columns == {"kernel": "sm90_xmma_gemm"}
    assert launched_columns(family, [], None)["kernel"] == ""


def test_spills_that_are_unknown_are_empty_instead_of_zero(family) -> None:
    assert launched_columns(family, [kernel("k(int)", 8, 9, spills=None)], None)["spill_bytes"] is None
