"""Inputs and reference of scaling; `xp` is CuPy, or NumPy without a GPU."""


def make_inputs(xp, rng, case):
    return {"x": 2 * rng.random(int(case["n"]), dtype=xp.float32) - 1}


def reference(xp, inputs, case):
    """Returns the answer in float64, and the magnitude that its rounding errors are relative to."""
    y = case["factor"] * inputs["x"].astype(xp.float64)
    return {"y": (y, abs(y))}
