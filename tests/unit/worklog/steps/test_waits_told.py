"""How a page says what a warp state waits for."""

import pytest

from warplog.analysis.decomposition import Change, Factor, StateChange, Step
from warplog.analysis.waits import Wait
from warplog.worklog.explain import sentence

MULTIPLY = Wait("wgmma", "child.cu:9")
UNKNOWN = Wait("mbarrier_or_memory")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (
            StateChange("barrier", 0.4, 0.2, (), MULTIPLY, Wait("wgmma", "parent.cu:7")),
            "Waiting for the tensor cores (barrier, mostly at the wgmma wait of child.cu:9): 40 → 20 µs.",
        ),
        (
            StateChange("long_scoreboard", 0.4, 0.2, (), UNKNOWN, Wait("tma", "p.cu:7")),
            "Waiting for an mbarrier, or data from global or local memory (long_scoreboard, where parent waits for TMA"
            " loads): 40 → 20 µs.",
        ),
        (
            StateChange("long_scoreboard", 0.4, 0.2, (), UNKNOWN),
            "Waiting for an mbarrier, or data from global or local memory (long_scoreboard): 40 → 20 µs.",
        ),
        (
            StateChange("barrier", 0.4, 0.2, (), MULTIPLY),
            "Waiting for the tensor cores (barrier, mostly at the wgmma wait of child.cu:9, where parent waits for a"
            " barrier): 40 → 20 µs.",
        ),
        (
            StateChange("barrier", 0.2, 0.0, (), Wait("barrier_or_wgmma"), MULTIPLY),
            "Waiting for the tensor cores (barrier): 20 → 0 µs.",
        ),
        (
            StateChange("barrier", 0.0, 0.02, (), MULTIPLY),
            "Waiting for the tensor cores (barrier, mostly at the wgmma wait of child.cu:9): 0 → 2 µs.",
        ),
    ],
)  # fmt: skip
def test_a_wait_is_named_by_the_code_of_the_kernel_that_it_is_in(state, told):
    faster = (Factor(Change("ipc", 1.0, 1.5), 1.5),)
    states = (StateChange("wait", 0.5, 0.1, ()), state)
    step = Step("f", "child", "parent", "1", 1.5, faster, states, 1.0, kernel_us=(100.0, 67.0))
    assert told in sentence(step)


def test_a_tied_step_names_both_waits_too():
    states = (StateChange("wait", 0.5, 0.1, ()), StateChange("barrier", 0.1, 0.4, (), MULTIPLY))
    step = Step("f", "child", "parent", "1", 1.0, (), states, 1.0, tied=True, kernel_us=(100.0, 100.0))
    assert (
        "more in barrier (waiting for the tensor cores, where parent waits for a barrier): 10 → 40 µs."
        in sentence(step)
    )
