"""Builds with the real compiler: an edited header and a failed build run again, and nothing else does."""

import os
import re
from pathlib import Path

import pytest

import snakemake_runs
from host_family import REFERENCE, YAML
from sass_builds import compilers
from warplog.records import door
from warplog.records.build import Build

WORKFLOW = Path(__file__).parents[2] / "workflow"
KERNEL = """
#include <cuda_runtime.h>
{above}
__global__ void scale(const float* x, float* y, int N, float factor) {{ if (N > 0) y[0] = factor * x[0] + {more}; }}
extern "C" int launch(const float* x, float* y, int N, float factor, cudaStream_t stream) {{
    scale<<<1, 32, 0, stream>>>(x, y, N, factor);
    return cudaGetLastError();
}}
"""
SOURCES = {
    "right.cu": KERNEL.format(above='#include "parts/more.cuh"', more="MORE"),
    "parts/more.cuh": '#pragma once\n#include "../../src/deep.inl"\n#define MORE DEEP\n',
    "../src/deep.inl": "#define DEEP 1\n",
    "alone.cu": KERNEL.format(above="", more="2"),
    "broken.cu": KERNEL.format(above="#include <gone.cuh>", more="GONE"),
}


def snakemake(place: Path, *arguments: str) -> str:
    options = ("--cores", "2", "--nocolor", "--quiet", "host", "--config", "mode=live", "gpu=h200")
    environment = {**os.environ, "PYTHONPATH": str(WORKFLOW)}
    done = snakemake_runs.run(
        place, "-s", str(WORKFLOW / "Snakefile"), *arguments, *options, environment=environment
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def records(place: Path) -> dict[str, Build]:
    found = (place / "results/build/sm_90/scale").glob("*/record.json")
    return {path.parent.name: door.read(path, Build) for path in found}


@pytest.mark.nvcc
def test_an_edited_header_and_a_failed_build_run_again_until_they_succeed(tmp_path: Path) -> None:
    compilers()
    folder = tmp_path / "kernels" / "scale"
    entries = "".join(f"  - {{name: {name}, parent: right, idea: one}}\n" for name in ("alone", "broken"))
    for name, text in {**SOURCES, "family.yaml": YAML + entries, "reference.py": REFERENCE}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    snakemake(tmp_path, "build")
    first = records(tmp_path)
    statuses = {name: record.status for name, record in first.items()}
    assert statuses == {"right": "ok", "alone": "ok", "broken": "compile_error"}, "others go on"
    assert "gone.cuh: No such file" in first["broken"].reason
    files = {"kernels/scale/right.cu", "kernels/scale/parts/more.cuh", "kernels/src/deep.inl"}
    assert set(first["right"].dependencies) == files

    planned = snakemake(tmp_path, "build", "--dry-run")
    assert set(re.findall(r"variant=(\w+)", planned)) == {"broken"}

    (folder / "../src/deep.inl").write_text("#define DEEP 3\n")
    (folder / "gone.cuh").write_text("#define GONE 4\n")
    snakemake(tmp_path, "build")
    second = records(tmp_path)
    assert {record.status for record in second.values()} == {"ok"}
    assert second["alone"] == first["alone"]
    for name in ("right", "broken"):
        assert second[name].source_sha256 != first[name].source_sha256
    assert second["right"].library_sha256 != first["right"].library_sha256
    assert "Nothing to be done" in snakemake(tmp_path, "build", "--dry-run")
