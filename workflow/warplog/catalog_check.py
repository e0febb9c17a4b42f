"""What the schema of a family.yaml cannot say."""

from typing import TYPE_CHECKING

from warplog.claim import check_claims
from warplog.contract import probed
from warplog.errors import WarplogError
from warplog.schema import suggest

if TYPE_CHECKING:
    from warplog.catalog import Family


def check_family(family: "Family") -> None:
    """Raises WarplogError where a name is not there, a formula does not evaluate, a file lies elsewhere."""
    if family.folder.name != family.name:
        raise WarplogError(f"{family.file}: family {family.name!r} must lie in a folder of that name")
    _check_names(family)
    for variant in family.variants:
        if not variant.file.resolve().is_relative_to(family.folder.resolve()):
            raise WarplogError(f"{family.file}: {variant.file} lies outside the family's folder")
        if not variant.file.is_file():
            raise WarplogError(
                f"{family.file}: variant {variant.name!r} needs {variant.file}, which is missing"
            )
    names = [v.name for v in family.variants]
    check_claims(family.claims, family.name, names, family.cases, str(family.file))
    for case in (*family.cases.values(), *family.check_cases.values()):
        for text in (family.flops, family.bytes_moved, family.size, family.tolerance["reduction_length"]):
            family.value(text, case)
        for argument in family.arguments:
            family.shape(argument, case)
            if argument.kind == "scalar" and argument.name not in case.values:
                raise WarplogError(f"{family.file}: case {case.name!r} gives no value for {argument.name!r}")


def _check_names(family: "Family") -> None:
    """Every name that is used must be there."""
    names = [v.name for v in family.variants]
    printed = [figure.case for v in family.variants for figure in v.published if figure.case]
    arrays = [a.name for a in family.arguments if a.kind != "scalar"]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise WarplogError(f"{family.file}: variant {min(twice)!r} is there twice")
    for key, wanted, known in (
        ("profile_cases", family.profile_cases, [*family.cases, *family.check_cases]),
        ("headline_case", (family.headline_case,), [c for c in family.profile_cases if c in family.cases]),
        ("measuring.hot_cases", family.measuring.hot_cases, list(family.cases)),
        ("probes", probed(family.probes), [*family.cases, *family.check_cases]),
        ("baseline", (family.baseline,) if family.baseline else (), names),
        ("variants.parent", tuple(v.parent for v in family.variants if v.parent), names),
        (
            "variants.tune.cases",
            [c for v in family.variants if v.tune for c in v.tune.cases],
            list(family.cases),
        ),
        ("variants.published.case", printed, list(family.cases)),
        ("variants.memory", tuple(a for v in family.variants for a in v.memory), arrays),
    ):
        for name in wanted:
            if name not in known:
                raise WarplogError(f"{family.file}: {key}: {name!r} is not there; {suggest(name, known)}")
