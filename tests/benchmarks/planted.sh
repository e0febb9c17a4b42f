#!/usr/bin/env bash
# Tests the comparison on a GPU (4 minutes): first the families reduction and planted against themselves, then each
# planted variant against its parent. Expected: no FASTER or SLOWER in the first; in the second, steps_plus_2_percent is
# SLOWER, steps_minus_2_percent FASTER, steps_again and steps_plus_0_2_percent neither. Only the second decides the
# exit status, which is 0 if the verdicts are as expected.
set -euo pipefail
cd "$(dirname "$0")/../.."

folders='kernel_folders=["tests/benchmarks/kernels"]'
uv run snakemake --cores 8 aa --config "$folders" families=reduction,planted \
    'aa={"rounds": 3}'
cat results/aa/summary.md

# A regression is planted, so the run must fail after it has written its files.
status=0
uv run snakemake --cores 8 compare --config "$folders" families=planted \
    'profile={"ncu": false, "nsys": false}' baseline=parents candidate=results || status=$?
uv run python - "$status" <<'PYTHON'
import csv, sys
rows = list(csv.DictReader(open("results/compare/verdicts.csv")))
verdicts = {(r["variant"], r["case"], r["regime"]): r["verdict"] for r in rows}
for row in rows:
    print(f"{row['variant']:24} {row['case']:>6} {row['regime']:9} {100 * float(row['ratio']) - 100:+.3f} % {row['verdict']}")
expected = {"steps_plus_2_percent": {"SLOWER"}, "steps_minus_2_percent": {"FASTER"}}
wrong = {key: word for key, word in verdicts.items() if word not in expected.get(key[0], {"SAME", "AMBIGUOUS"})}
if sys.argv[1] != "1":
    sys.exit("the comparison did not fail although a regression is planted")
sys.exit(f"not as planted: {wrong}" if wrong else 0)
PYTHON
