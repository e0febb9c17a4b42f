"""Times the cases of one compiled variant with NVBench; compare_timers.py starts it and reads its answer.

    python tests/benchmarks/nvbench_child.py TASK.json

Uses NVBench's cold measurement (L2 flush, blocked stream, its own stop rule) with a time limit. It launches the
same library with the same packed arguments as warplog's worker; the results of each case are checked afterwards.
If cuda.bench cannot be imported, the answer states it and the exit status is 0.
"""

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow"))

from warplog.catalog.family import load_family
from warplog.core.statistics import summarise
from warplog.measure.worker.backend import Launcher, make_backend
from warplog.measure.worker.problem import Problem
from warplog.records.door import read_json, write

_REMEDY = "uv sync --inexact --extra peers, or pip install 'cuda-bench[cu13]'"
_SEED = 40_000
_BENCHMARK = "variant"


def main(task_file: Path) -> int:
    """Runs the task and writes its `answer`; returns 0 if every case was tried or NVBench is missing."""
    task = read_json(task_file)
    answer = Path(task["answer"])
    try:
        import cuda.bench as nvbench

        nvbench.run_all_benchmarks  # noqa: B018 - the native part is loaded on first use
    except ImportError as error:
        reason = f"cuda.bench cannot be imported ({error}); {_REMEDY}"
        write(answer, {"status": "missing", "reason": " ".join(reason.split()), "cases": []})
        return 0
    wrong = _run(nvbench, task)
    cases = _read(Path(task["samples"]), task["cases"])
    for case in cases:
        if reason := wrong.get(case["case"]):
            case.update(status="wrong", reason=reason, median_us=None)
    write(answer, {"status": "ok", "reason": "", "version": nvbench.__version__, "cases": cases})
    return 0


def _run(nvbench: Any, task: dict[str, Any]) -> dict[str, str]:
    """Measures all cases with NVBench; returns what is wrong with their results, by case; '' if nothing."""
    family = load_family(Path(task["family_file"]))
    backend = make_backend(task["backend"])
    launcher = Launcher(Path(task["library"]), backend)
    verdicts: dict[str, str] = {}

    def measure(state: Any) -> None:
        case = family.cases[state.get_string("case")]
        problem = Problem(backend.xp, family, case)
        problem.fill(_SEED)
        launcher(problem.arguments)  # loads the module, which must not happen while the stream is blocked
        arguments = ctypes.addressof(problem.arguments)

        def launch(at: Any) -> None:
            launcher.check(launcher.function(arguments, at.get_stream().addressof()))

        state.exec(launch, batched=False)
        backend.synchronise()
        verdicts[case.name] = problem.verdict().reason

    nvbench.register(measure).set_name(_BENCHMARK).add_string_axis("case", task["cases"])
    bounds = ["--min-time", str(task["min_time_s"]), "--timeout", str(task["timeout_s"])]
    nvbench.run_all_benchmarks(["nvbench", *bounds, "--devices", "0", "--jsonbin", task["samples"]])
    return verdicts


def _read(samples: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns summary and samples of each case in microseconds, from NVBench's output."""
    from cuda.bench.results import BenchmarkResult

    states = {s.point["case"]: s for s in BenchmarkResult.from_json(samples)[_BENCHMARK]}
    return [_case(name, states.get(name)) for name in names]


def _case(name: str, state: Any) -> dict[str, Any]:
    if state is None or state.is_skipped or not state.samples:
        reason = (state and state.skip_reason) or "NVBench kept no samples"
        return {"case": name, "status": "error", "reason": reason, "median_us": None}
    times_us = [s * 1e6 for s in state.samples]
    return {"case": name, "status": "ok", "reason": "", **vars(summarise(times_us)), "samples_us": times_us}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
