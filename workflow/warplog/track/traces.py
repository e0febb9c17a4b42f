"""The jobs of a run as a trace, which MLflow shows in the tab "Traces": one span per job, from build to profile."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from warplog.track.runs import Run

if TYPE_CHECKING:
    from mlflow.entities import Span

_ROOT = "f" * 16


def trace_id(run_id: str) -> str:
    """Returns the id of the trace of a run, which is derived from the run's, so that nobody must remember it."""
    return f"tr-{run_id}"


def spans(run_id: str, run: Run) -> list["Span"]:
    """Returns the spans of the run's jobs below one for the run; [] if the times of the jobs are unknown.

    The tables have durations only: the jobs follow each other without gaps, although other jobs ran between them.
    """
    from mlflow.entities import Span

    return [Span.from_dict_v2(one) for one in _spans(run_id, run)] if run.jobs else []


def _spans(run_id: str, run: Run) -> Iterator[dict[str, Any]]:
    begin = run.started_ms * 1_000_000
    whole = {
        "mlflow.spanType": "CHAIN",
        "mlflow.spanInputs": {"family": run.family, "variant": run.variant},
        "mlflow.spanOutputs": {"status": run.status},
    }
    yield _span(run_id, run.variant, _ROOT, None, (begin, run.ended_ms * 1_000_000), whole)
    for number, (job, seconds) in enumerate(run.jobs):
        end = begin + round(seconds * 1e9)
        job_id = f"{number + 1:016x}"
        yield _span(run_id, job, job_id, _ROOT, (begin, end), {"mlflow.spanType": "TOOL"})
        begin = end


def _span(
    run_id: str,
    name: str,
    span_id: str,
    parent: str | None,
    period: tuple[int, int],
    attributes: dict[str, Any],
) -> dict[str, Any]:
    """Returns a span in the form that `Span.from_dict_v2` reads; `period` is begin and end in nanoseconds."""
    every = {"mlflow.traceRequestId": trace_id(run_id), **attributes}
    return {
        "name": name,
        "context": {"trace_id": f"0x{run_id}", "span_id": f"0x{span_id}"},
        "parent_id": parent and f"0x{parent}",
        "start_time": period[0],
        "end_time": period[1],
        "attributes": {key: json.dumps(value) for key, value in every.items()},
        "status_code": "OK",
        "status_message": "",
        "events": [],
    }
