"""Inputs and answer of y = factor x + b; b consists of integers, which bfloat16 represents exactly."""


def make_inputs(xp, rng, case):
    n = int(case["n"])
    b = rng.integers(1, 9, size=n).astype(xp.float32)
    return {"x": rng.random(n, dtype=xp.float32), "b": b}


def reference(xp, inputs, case):
    y = case["factor"] * inputs["x"].astype(xp.float64) + inputs["b"].astype(xp.float64)
    return {"y": (y, abs(y))}
