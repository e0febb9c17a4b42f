"""Variants that launch the same kernel, and gains that only win back what the parent had lost."""

import pandas as pd

from warplog.analysis import shared_code
from warplog.analysis.shared_code import Twin

LAUNCH = {
    "registers_per_thread": 37,
    "grid_blocks": 4096,
    "block_threads": 256,
    "shared_bytes_per_block": 1024,
}


def row(parent, us):
    interval = {"q1_us": 0.99 * us, "q3_us": 1.01 * us}
    return {"parent": parent, "status": "ok", "median_us": us, **interval}


def test_a_gain_over_a_detour_is_set_beside_the_fastest_ancestor_before_it():
    rows = {"a": row("", 100), "b": row("a", 150), "c": row("b", 200), "d": row("c", 90), "e": row("d", 80)}
    assert [shared_code.faster_ancestor(rows, name) for name in rows] == ["", "", "", "a", ""]
    rows["d"] = row("c", 210)
    assert shared_code.faster_ancestor(rows, "d") == "", "no gain"
    rows["d"] = row("c", 199)
    assert shared_code.faster_ancestor(rows, "d") == "", "tied with its parent"
    rows["b"], rows["d"] = row("a", 101), row("c", 90)
    assert shared_code.faster_ancestor(rows, "d") == "b", "b is tied with a, but faster than c"
    assert shared_code.faster_ancestor({"d": row("gone", 90)}, "d") == ""


def tables(own, other, us=31.0, kernel="void k<float, (int)4>(const T1 *)", executed=1e6):
    """Two variants with a kernel each; `own` and `other` are the numbers of instructions by opcode."""
    measured, counted = [], []
    for name, time, opcodes in (("base", 31.0, other), ("next", us, own)):
        measured.append(
            {"family": "f", "variant": name, "case": "1", "gap": "", "baseline": "", **row("", time)}
        )
        ncu = {
            "variant": name,
            "case": "1",
            "kernel": kernel if name == "next" else "k<float, (int)4>(const T1 *)",
        }
        ncu |= {"launch": 0, "tool": "ncu", "status": "ok", "reason": ""}
        values = {**LAUNCH, "instructions_executed": executed if name == "next" else 1e6, "duration_us": 30.0}
        counted += [{**ncu, "metric": metric, "value": value} for metric, value in values.items()]
        code = {**ncu, "case": "", "tool": "cuobjdump", "kernel": ncu["kernel"].replace("(int)", "")}
        whole = {"instructions": sum(opcodes.values()), **opcodes}
        counted += [{**code, "metric": f"sass_{opcode}", "value": number} for opcode, number in whole.items()]
        counted.append({**code, "tool": "ptxas", "metric": "registers_per_thread", "value": 37})
    return Tables(measured, counted)


class Tables:
    """As much of FigureTables as `twins` reads."""

    profiled_case = "1"

    def __init__(self, measured, counted):
        self.measured, self.metrics = pd.DataFrame(measured), pd.DataFrame(counted)

    def ladder(self, case):
        return self.measured.assign(parent=["", "base"])

    def counters(self, names):
        rows = self.metrics[self.metrics["tool"] == "ncu"]
        wide = rows.pivot_table(index=["variant", "kernel"], columns="metric", values="value").reset_index()
        return wide[["variant", "kernel", *names]]


SOURCES = {"base": ["base.cu"], "next": ["next.cu", "some.cuh"]}
CODE = {"FADD": 10.0, "LDG.E": 4.0}


def test_a_kernel_of_another_name_with_the_same_code_is_the_same_if_the_times_are_tied():
    other = "void n::renamed<float, (int)4>(const T1 *)"
    assert shared_code.twins(tables(CODE, CODE), SOURCES) == {"next": Twin("base", True, (14, 14), 37)}
    assert shared_code.twins(tables(CODE, CODE, kernel=other), SOURCES)["next"].same
    assert shared_code.twins(tables(CODE, CODE, executed=1.0005e6), SOURCES)["next"].same, (
        "it polled more often"
    )
    assert shared_code.twins(tables(CODE, CODE, executed=1.002e6), SOURCES) == {}
    assert shared_code.twins(tables(CODE, CODE, 40.0, other), SOURCES) == {}, (
        "addresses may differ, which no opcode shows"
    )
    assert shared_code.twins(tables(CODE, CODE), {"base": ["one.cu"], "next": ["one.cu"]}) == {}, (
        "other parameters"
    )
    assert shared_code.twins(tables(CODE, CODE | {"LDG.E": 5.0}), SOURCES) == {}


def test_a_kernel_that_is_included_from_another_variant_may_be_compiled_otherwise():
    including = {"base": ["base.cu"], "next": ["next.cu", "base.cu"]}
    kernel = "void n::k<float, (int)4>(const T1 *)"
    twin = shared_code.twins(tables(CODE, CODE | {"LDG.E": 5.0}, kernel=kernel), including)["next"]
    assert twin == Twin("base", False, (15, 14), 37)


def twin(name, same=True):
    return Twin(name, same, (14, 14), 37)


def test_variants_that_launch_the_same_kernel_are_one_class_and_recompiled_ones_are_not():
    twins = {"c": twin("b"), "d": twin("c"), "e": twin("d", same=False)}
    assert shared_code.classes(twins, "abcde") == dict.fromkeys("bcd", ("b", "c", "d"))


def test_of_the_variants_with_the_fastest_kernel_the_best_one_wins_most_cases():
    def timed(**times):
        return {name: row("", us) | {"is_baseline": name == "library"} for name, us in times.items()}

    head, other = timed(a=30, b=10, c=10.1, library=5), timed(a=10, b=90, c=11, library=5)
    more = timed(a=30, b=90, c=20, library=5)
    alike = dict.fromkeys("bc", ("b", "c"))
    assert shared_code.best(head, {}, [head, more]) == "b"
    assert shared_code.best(head, alike, [head, other, more]) == "c", (
        "tied at the headline case, first at another"
    )
    assert shared_code.best(head, alike, [head]) == "b", "the first of equals"
    assert shared_code.best({"library": head["library"]}, {}, []) == ""


def test_the_same_kernel_with_others_beside_it_is_another_launch():
    """Of a GEMM with three small kernels behind it, and the same one with a single one, the GEMM takes longest."""
    found = tables(CODE, CODE)
    beside = found.metrics[(found.metrics["variant"] == "next") & (found.metrics["tool"] == "ncu")]
    found.metrics = pd.concat([found.metrics, beside.assign(launch=1, metric="sm_mhz")])
    assert shared_code.twins(found, SOURCES) == {}
