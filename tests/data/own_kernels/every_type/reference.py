"""Inputs of every narrow type; float8 inputs are float32 here, and rounded by warplog before `reference` sees them."""


def make_inputs(xp, rng, case):
    n = int(case["N"])
    numbers = {name: (16 * rng.random(n, dtype=xp.float32) - 8) for name in ("e4", "e5")}
    ranges = {"i8": (-128, 128, xp.int8), "u8": (0, 256, xp.uint8), "i16": (-999, 999, xp.int16)}
    whole = {
        name: xp.floor(low + (high - low) * rng.random(n)).astype(kind)
        for name, (low, high, kind) in ranges.items()
    }
    z = (rng.random(n, dtype=xp.float32) + 1j * rng.random(n, dtype=xp.float32)).astype(xp.complex64)
    return {**numbers, **whole, "mask": rng.random(n) < 0.5, "z": z}


def reference(xp, inputs, case):
    names = ("e4", "e5", "i8", "u8", "i16", "mask")
    terms = [inputs[name].astype(xp.float64) for name in names]
    total, scale = sum(terms), sum(map(abs, terms))
    square = inputs["z"].astype(xp.complex128) ** 2
    small = total / 8
    return {
        "sum": (total, scale),
        "narrow": (small, xp.maximum(abs(small), 2.0**-6)),
        "square": (square, xp.abs(inputs["z"].astype(xp.complex128)) ** 2),
        "positive": ((total > 0).astype(xp.float64), 0 * total),
    }
