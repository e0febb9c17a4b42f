"""y = twice the sums of rows of 2048."""


def make_inputs(xp, rng, case):
    return {"x": rng.random(2048 * int(case["rows"])).astype(xp.float32)}


def reference(xp, inputs, case):
    sums = 2 * inputs["x"].astype(xp.float64).reshape(-1, 2048).sum(axis=1)
    return {"y": (sums, xp.abs(sums))}
