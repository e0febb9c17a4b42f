"""A family whose 'kernels' are C functions for the host: the checker and the supervisor without a GPU."""

import subprocess
from pathlib import Path

from warplog.catalog import Family, load_family
from warplog.device import Gpu
from warplog.jobs import Job
from warplog.records import sha256_file, write_json

YAML = """
family: scale
title: scaling
summary: y = factor * x + beta * y
arguments:
  - {name: x, kind: input, dtype: float32, shape: [N]}
  - {name: y, kind: output, dtype: float32, shape: [N]}
  - {name: N, kind: scalar, dtype: int32}
  - {name: factor, kind: scalar, dtype: float32}
tolerance: {dtype: float32, reduction_length: 1, factor: 2}
work: {flops: N, bytes: 8*N, size: N, size_label: elements}
defaults: {factor: 3.0}
cases: {"64": {N: 64}, "1000": {N: 1000}}
check_cases: {odd: {N: 127}, one: {N: 1}, even: {N: 256}}
profile_cases: ["64"]
headline_case: "64"
baseline: right
variants:
  - {name: right, idea: as it should be}
"""
REFERENCE = """
def make_inputs(xp, rng, case):
    return {"x": rng.random(int(case["N"])).astype(xp.float32)}

def reference(xp, inputs, case):
    expected = inputs["x"].astype(xp.float64) * case["factor"]
    return {"y": (expected, xp.abs(expected))}
"""
HEADER = (
    "#include <stdlib.h>\n#include <stdio.h>\n#include <unistd.h>\n#include <signal.h>\n#include <math.h>\n"
)
STRUCT = "struct A { const float* x; float* y; int N; float factor; };\n"


def make_family(folder: Path) -> Family:
    """The family in `folder`/scale."""
    place = folder / "scale"
    place.mkdir(parents=True, exist_ok=True)
    (place / "family.yaml").write_text(YAML)
    (place / "reference.py").write_text(REFERENCE)
    (place / "right.cu").write_text("// a stand-in; the tests compile C\n")
    return load_family(place / "family.yaml")


def make_job(folder: Path, body: str, rounds: int = 2, timeout_s: float = 20) -> Job:
    """A job whose launcher is the C statement list `body` over `a` (struct A)."""
    family = make_family(folder / "kernels")
    build = folder / "build"
    build.mkdir(exist_ok=True)
    source = build / "launcher.c"
    source.write_text(
        f"{HEADER}{STRUCT}int warplog_launch(const struct A* a, void* stream) {{ {body} return 0; }}\n"
    )
    library = build / "kernel.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    record = {
        "schema": 1,
        "stage": "build",
        "family": "scale",
        "variant": "right",
        "arch": "sm_90",
        "status": "ok",
        "reason": "",
        "origin": "live",
        "source_sha256": "",
        "library_sha256": sha256_file(library),
        "parameters": {},
        "command": [],
        "seconds": 0.0,
        "tools": {},
        "kernels": [],
    }
    write_json(build / "record.json", record, "record")
    gpu = Gpu("none", "no GPU", "host", (9, 0), "sm_90", 0, 0, "", "", 0, None, "")
    return Job(
        family=family,
        variant=family.variants[0],
        gpu=gpu,
        build_folder=build,
        record=folder / "check.json",
        scratch=folder / "work",
        settings={"rounds": rounds, "timeout_s": timeout_s},
        tools={},
        commit="",
        content_sha256="",
        backend="numpy",
    )
