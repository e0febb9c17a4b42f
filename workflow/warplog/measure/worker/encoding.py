"""Values as the bits that arrays hold: bfloat16, the two float8 formats and bool, which NumPy and CuPy lack or convert.

`xp` is cupy or numpy. The float8 formats are those of the OCP specification ("OFP8 Formats", 1.0): e4m3 has no
infinity, e5m2 is the upper byte of a float16. Values are rounded to nearest, ties to even; what is too large becomes
NaN in e4m3 and infinity in e5m2, as the conversions of ml_dtypes do.
"""

from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

Array = Any  # of NumPy, CuPy or PyTorch, which share no type
Arrays = dict[str, Array]  # by argument name
_STORED = {"bfloat16": "uint16", "float8_e4m3": "uint8", "float8_e5m2": "uint8", "bool": "uint8"}
_SIGN, _NAN = 0x80, 0x7F
# Bits of the mantissa, exponent's bias, and the code after that of the largest finite number.
_FLOAT8 = {"float8_e4m3": (3, 7, 0x7F), "float8_e5m2": (2, 15, 0x7C)}


def stored_dtype(dtype: str) -> np.dtype[Any]:
    """Returns the NumPy type of the bits of one element."""
    return np.dtype(_STORED.get(dtype, dtype))


def encoded(xp: ModuleType, values: Any, dtype: str) -> Any:
    """Returns the bits that represent `values`; the values themselves for types that NumPy converts correctly."""
    if dtype == "bfloat16":
        bits = xp.ascontiguousarray(values, dtype=xp.float32).view(xp.uint32)
        # Adds half of the dropped part, less one bit if the kept part is even, so that ties round to even.
        return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(xp.uint16)
    if dtype in _FLOAT8:
        single = xp.asarray(values).astype(xp.float32)
        codes = xp.searchsorted(xp.asarray(_limits(dtype)), xp.abs(single)).astype(xp.uint8)
        codes = xp.maximum(codes, xp.isnan(single) * xp.uint8(_NAN))
        return codes | (xp.signbit(single) * xp.uint8(_SIGN))
    if dtype == "bool":
        return (xp.asarray(values) != 0).astype(xp.uint8)
    return values


def decoded(xp: ModuleType, bits: Any, dtype: str) -> Any:
    """Returns the values of stored elements as float64, or complex128; a byte of a bool is a number, so 2 is not 1."""
    if dtype == "bfloat16":
        return (bits.astype(xp.uint32) << 16).view(xp.float32).astype(xp.float64)
    if dtype in _FLOAT8:
        return xp.asarray(_values(dtype))[bits]
    return bits.astype(xp.complex128 if dtype == "complex64" else xp.float64)


def rounded(xp: ModuleType, values: Any, dtype: str) -> Any:
    """Returns float8 values as float32 after rounding; other types as they are."""
    return decoded(xp, encoded(xp, values, dtype), dtype).astype(xp.float32) if dtype in _FLOAT8 else values


def _magnitude(dtype: str, code: int) -> float:
    mantissa_bits, bias, _ = _FLOAT8[dtype]
    exponent, fraction = code >> mantissa_bits, code % (1 << mantissa_bits)
    whole = 1.0 if exponent else 0.0
    return (whole + fraction / (1 << mantissa_bits)) * 2.0 ** (max(exponent, 1) - bias)


@cache
def _values(dtype: str) -> Any:
    """Returns the values of the 256 codes, in float64."""
    _, _, beyond = _FLOAT8[dtype]
    infinite = np.inf if dtype == "float8_e5m2" else np.nan
    positive = [_magnitude(dtype, code) for code in range(beyond)]
    positive += [infinite, *[np.nan] * (_NAN - beyond)]
    return np.array([*positive, *(-value for value in positive)])


@cache
def _limits(dtype: str) -> Any:
    """Returns, for each code, the largest float32 that rounds to it or to a smaller one.

    It lies halfway to the next code, and just below if the code is odd, so that a tie becomes the even one.
    """
    ends = [_magnitude(dtype, code) for code in range(_FLOAT8[dtype][2] + 1)]
    halves = np.array([(a + b) / 2 for a, b in pairwise(ends)], dtype=np.float32)
    halves[1::2] = np.nextafter(halves[1::2], np.float32(0))
    return halves
