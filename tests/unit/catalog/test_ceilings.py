"""Ceilings in family.yaml: what is refused, and that those of the families here can be measured and have one name."""

from collections import Counter
from pathlib import Path

import pytest

from host_family import YAML, make_family
from shipped_families import FAMILIES
from warplog.analysis import bounds
from warplog.catalog.family import load_family
from warplog.core.errors import WarplogError
from warplog.figures.roofline import CEILINGS

ENTRY = "{ceiling: step_us, about: a step, unit: us, measure: median_us(right) / N}"


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (f"{ENTRY}, {ENTRY}", "'step_us' occurs twice"),
        (ENTRY.replace("right", "wrong"), "no variant 'wrong'"),
        (ENTRY.replace("/ N", "/ M"), "unknown name 'M'"),
        (ENTRY.replace("unit: us", 'unit: us, case: "65"'), "no timed case '65'"),
        (ENTRY.replace("unit: us", "unit: us, low: 2, high: 1"), "low: 2 is larger than high: 1"),
        (ENTRY.replace("unit: us, ", ""), "'unit' is missing"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(tmp_path: Path, entries: str, said: str) -> None:
    path = make_family(tmp_path).file
    path.write_text(f"{YAML}ceilings: [{entries}]\n")
    with pytest.raises(WarplogError, match=said):
        load_family(path)


def test_each_ceiling_is_shown_by_one_family() -> None:
    names = Counter(entry.ceiling for family in FAMILIES.values() for entry in family.ceilings)
    assert names
    assert max(names.values()) == 1


def test_what_replaces_peaks_has_the_unit_of_the_peak() -> None:
    units = {entry.ceiling: entry.unit for family in FAMILIES.values() for entry in family.ceilings}
    replacing = {*bounds.CEILINGS.values(), *(name for name, _, _ in CEILINGS.values())}
    assert all(
        units[name] == ("TFLOP/s" if name == "fp32_tflops" else "GB/s") for name in replacing & set(units)
    )
