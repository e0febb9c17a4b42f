"""Inputs and reference of row sums; `xp` is CuPy, or NumPy without a GPU."""


def make_inputs(xp, rng, case):
    shape = int(case["rows"]), int(case["columns"])
    return {"x": 2 * rng.random(shape, dtype=xp.float32) - 1}


def reference(xp, inputs, case):
    """Returns the answer in float64, and the magnitude that its rounding errors are relative to."""
    x = inputs["x"].astype(xp.float64)
    return {"out": (x.sum(axis=1), abs(x).sum(axis=1))}
