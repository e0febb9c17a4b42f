"""The contract is that of sgemm, and so are its inputs and its reference answer."""

from pathlib import Path

from warplog.catalog.family import load_family

_SGEMM = load_family(Path(__file__).parents[4] / "kernels" / "sgemm" / "family.yaml").reference()
make_inputs = _SGEMM.make_inputs
reference = _SGEMM.reference
