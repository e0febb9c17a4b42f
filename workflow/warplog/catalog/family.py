"""Loads kernel families and their variants from folders that contain a family.yaml."""

import importlib.util
import symtable
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from warplog.catalog.claims import Claim, check_claims, make_claim
from warplog.catalog.contract import (
    Argument,
    Case,
    Measuring,
    Probe,
    Published,
    Requires,
    make_argument,
    make_probes,
    matching,
    probed,
)
from warplog.catalog.includes import included
from warplog.catalog.space import Space, space_of
from warplog.core import formula
from warplog.core.errors import WarplogError
from warplog.core.records import sha256_file, sha256_of
from warplog.core.schema import read_yaml, suggest

# The functions of reference.py.
_REFERENCE = {"make_inputs": "make_inputs(xp, rng, case)", "reference": "reference(xp, inputs, case)"}


@dataclass(frozen=True)
class Variant:
    """One variant of a family: a source file with its compile-time parameters.

    Attributes:
        file: the .cu source.
        parent: variant that this one is based on.
        idea: the idea in one sentence.
        credit: publication of the idea.
        parameters: compile-time parameters, passed to nvcc as -D.
        expects: expected properties of the compiled code, see family.schema.yaml.
        draft: whether campaigns exclude the variant unless it is named.
        library: whether the variant calls a library.
        tune: the space that `snakemake tune` searches; None if there is none.
        remark: note on the parameters, see warplog.catalog.winners.
        published: published results.
        memory: arrays in host memory, by name: "pinned" (and mapped for kernels) or "pageable".
    """

    name: str
    family: str
    file: Path
    parent: str | None
    idea: str
    credit: str
    parameters: Mapping[str, int]
    requires: Requires
    expects: Mapping[str, Any]
    draft: bool
    library: bool = False
    tune: Space | None = None
    remark: str = ""
    published: tuple[Published, ...] = ()
    memory: Mapping[str, str] = field(default_factory=dict)

    def include_folders(self) -> tuple[Path, ...]:
        """Returns the folders in which the compiler looks for headers, in order: the family's, then ../include."""
        return self.file.parent, self.file.parent.parent / "include"

    def headers(self) -> list[Path]:
        """Returns the files that the source includes, directly or not: see warplog.catalog.includes."""
        return included(self.file, self.include_folders())

    def fingerprint(self) -> str:
        """Returns the SHA-256 of source, headers and parameters, which identifies builds and measurements."""
        headers = [sha256_file(path) for path in self.headers()]
        return sha256_of(sha256_file(self.file), headers, dict(self.parameters))


@dataclass(frozen=True)
class Family:
    """A kernel family: the contract of its variants, and the cases to check and time.

    family.schema.yaml describes the keys of family.yaml that these attributes hold. Formulas (`flops`, `size`, …)
    are evaluated per case with `value`.

    Attributes:
        folder: folder of family.yaml.
        arguments: launcher arguments in order, without the stream.
        tolerance: dtype, reduction_length and factor of the error bound.
        flops: formula of the algorithm's floating-point operations.
        bytes_moved: formula of the compulsory traffic in bytes.
        size: formula of the problem size on the x axis, with the label `size_label`.
        limit: link that limits the traffic, "dram" or "pcie".
        cases: timed cases by name.
        check_cases: cases for the correctness check by name.
        profile_cases: names of the cases that the profilers capture.
        headline_case: timed case that single-number summaries quote.
        baseline: variant that ratios refer to; "" for none.
        draft: whether campaigns exclude the family unless it is named.
        variants: the variants in ladder order.
        probes: quantities with known true values; only families of the oracle have any.
        measuring: measurement options.
        figures: additional figures to draw.
    """

    name: str
    title: str
    summary: str
    folder: Path
    arguments: tuple[Argument, ...]
    tolerance: Mapping[str, Any]
    flops: str
    bytes_moved: str
    size: str
    size_label: str
    limit: str
    cases: Mapping[str, Case]
    check_cases: Mapping[str, Case]
    profile_cases: tuple[str, ...]
    headline_case: str
    baseline: str
    draft: bool
    variants: tuple[Variant, ...]
    claims: tuple[Claim, ...] = ()
    probes: tuple[Probe, ...] = ()
    measuring: Measuring = field(default_factory=Measuring)
    figures: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """The family.yaml of this family."""
        return self.folder / "family.yaml"

    def variant(self, name: str) -> Variant:
        """Returns the variant with this name.

        Raises:
            WarplogError: There is none; the text suggests a similar name.
        """
        for variant in self.variants:
            if variant.name == name:
                return variant
        known = [v.name for v in self.variants]
        raise WarplogError(f"{self.file}: no variant {name!r}; {suggest(name, known)}")

    def case(self, name: str) -> Case:
        """Returns the timed or check case with this name."""
        return self.cases.get(name) or self.check_cases[name]

    def ladder(self, chosen: Sequence[Variant]) -> tuple[Variant, ...]:
        """Returns the family's variants in order; drafts are included only if one of `chosen` is a draft."""
        with_drafts = any(v.draft for v in chosen)
        return tuple(v for v in self.variants if with_drafts or not v.draft)

    def value(self, text: str | float, case: Case) -> float:
        """Evaluates a formula of this family (flops, bytes, size, a dimension) for one case."""
        return formula.evaluate(text, case.values, f"{self.file} ({case.name})")

    def shape(self, argument: Argument, case: Case) -> tuple[int, ...]:
        """Returns the shape of an array for one case."""
        return tuple(int(self.value(d, case)) for d in argument.shape)

    def dtype(self, argument: Argument, case: Case) -> str:
        """Returns the element type of an argument for one case.

        Raises:
            WarplogError: The type depends on the case, and no condition holds for this one.
        """
        if not argument.dtypes:
            return argument.dtype
        where = f"{self.file} ({case.name})"
        for dtype, condition in argument.dtypes.items():
            if formula.holds(condition, case.values, where):
                return dtype
        conditions = ", ".join(argument.dtypes.values())
        raise WarplogError(
            f"{where}: {argument.name} has no dtype: none of its conditions holds: {conditions}"
        )

    def shapes(self, case: Case) -> list[tuple[int, ...]]:
        """Returns the shapes of all arrays for one case, in argument order."""
        return [self.shape(a, case) for a in self.arguments if a.kind != "scalar"]

    def reference(self) -> ModuleType:
        """Imports reference.py, which defines make_inputs(xp, rng, case) and reference(xp, inputs, case).

        Raises:
            WarplogError: The file is missing or lacks one of the two functions.
        """
        path = self.folder / "reference.py"
        spec = importlib.util.spec_from_file_location(f"warplog_reference_{self.name}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise WarplogError(f"{path}: the file is missing; it must define {' and '.join(_REFERENCE)}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, signature in _REFERENCE.items():
            if not callable(getattr(module, name, None)):
                raise WarplogError(f"{path}: the function {name} is missing; define {signature}")
        return module


def load(folders: Sequence[Path]) -> dict[str, Family]:
    """Loads all families in `folders` (each `<folder>/<family>/family.yaml`), by name.

    Raises:
        WarplogError: A folder is missing, two families share a name, or a family.yaml is invalid.
    """
    families: dict[str, Family] = {}
    for folder in folders:
        if not folder.is_dir():
            raise WarplogError(
                f"{folder}: no such folder of kernels; change to the project's folder, or correct kernel_folders"
            )
        for path in sorted(folder.glob("*/family.yaml")):
            family = load_family(path)
            if family.name in families:
                raise WarplogError(
                    f"{path}: family {family.name!r} is also in {families[family.name].folder}"
                )
            families[family.name] = family
    return families


def load_family(path: Path) -> Family:
    """Loads one family.yaml.

    Raises:
        WarplogError: The file does not fit the schema, or `check_family` fails.
    """
    data = read_yaml(path, "family")
    defaults = data.get("defaults", {})
    work = data["work"]
    names = (*data["cases"], *data["check_cases"])
    family = Family(
        name=data["family"],
        title=data["title"],
        summary=data["summary"],
        folder=path.parent,
        arguments=tuple(make_argument(a) for a in data["arguments"]),
        tolerance=data["tolerance"],
        flops=str(work["flops"]),
        bytes_moved=str(work["bytes"]),
        size=str(work["size"]),
        size_label=work["size_label"],
        limit=work.get("limit", "dram"),
        cases=_cases(data["cases"], defaults),
        check_cases=_cases(data["check_cases"], defaults),
        profile_cases=matching(data["profile_cases"], names),
        headline_case=data["headline_case"],
        baseline=data.get("baseline", ""),
        draft=data.get("draft", False),
        variants=tuple(_variant(v, data["family"], path.parent) for v in data["variants"]),
        claims=tuple(
            make_claim(c, data["family"], data["headline_case"], str(path)) for c in data.get("claims", ())
        ),
        probes=make_probes(data.get("probes", ()), names),
        measuring=Measuring(**data.get("measuring", {})),
        figures=tuple(data.get("figures", ())),
    )
    check_family(family)
    return family


def _cases(data: Mapping[str, Mapping[str, float]], defaults: Mapping[str, float]) -> dict[str, Case]:
    return {name: Case(name, {**defaults, **values}) for name, values in data.items()}


def _variant(data: Mapping[str, Any], family: str, folder: Path) -> Variant:
    requires = data.get("requires", {})
    return Variant(
        name=data["name"],
        family=family,
        file=folder / data.get("file", f"{data['name']}.cu"),
        parent=data.get("parent"),
        idea=data["idea"],
        credit=data.get("credit", ""),
        parameters=data.get("parameters", {}),
        requires=Requires(**requires),
        expects=data.get("expects", {}),
        draft=data.get("draft", False),
        library=data.get("library", False),
        tune=space_of(data, str(folder / "family.yaml")),
        published=tuple(Published(**figure) for figure in data.get("published", ())),
        memory=data.get("memory", {}),
    )


def check_family(family: Family) -> None:
    """Checks a family beyond its schema.

    Raises:
        WarplogError: A name is unknown, a formula cannot be evaluated, a file is missing or outside the folder, or
            reference.py lacks a function.
    """
    if family.folder.name != family.name:
        raise WarplogError(f"{family.file}: family {family.name!r} must be in a folder of that name")
    _check_names(family)
    _check_reference(family.folder / "reference.py")
    for variant in family.variants:
        if not variant.file.resolve().is_relative_to(family.folder.resolve()):
            raise WarplogError(f"{family.file}: {variant.file} is outside the family's folder")
        if not variant.file.is_file():
            raise WarplogError(
                f"{family.file}: variant {variant.name!r} requires {variant.file}, which is missing"
            )
    names = [v.name for v in family.variants]
    check_claims(family.claims, family.name, names, family.cases, str(family.file))
    for case in (*family.cases.values(), *family.check_cases.values()):
        for text in (family.flops, family.bytes_moved, family.size, family.tolerance["reduction_length"]):
            family.value(text, case)
        for argument in family.arguments:
            family.shape(argument, case)
            family.dtype(argument, case)
            if argument.kind == "scalar" and argument.name not in case.values:
                raise WarplogError(f"{family.file}: case {case.name!r} has no value for {argument.name!r}")
            if argument.kind == "scalar" and argument.dtypes:
                raise WarplogError(
                    f"{family.file}: {argument.name}: only the dtype of an array may depend on the case"
                )


def _check_reference(path: Path) -> None:
    """Checks that reference.py defines its functions, without running it: planning imports no array library."""
    needed = f"it must define {' and '.join(_REFERENCE.values())}"
    if not path.is_file():
        raise WarplogError(f"{path}: the file is missing; {needed}")
    try:
        table = symtable.symtable(path.read_text(encoding="utf-8"), str(path), "exec")
    except (SyntaxError, ValueError) as error:
        raise WarplogError(f"{path}: cannot be read as Python: {error}") from None
    defined = {name.get_name() for name in table.get_symbols() if name.is_assigned() or name.is_imported()}
    for name in _REFERENCE:
        if name not in defined:
            raise WarplogError(f"{path}: the function {name} is missing; {needed}")


def _check_names(family: Family) -> None:
    """Checks that all names refer to cases, variants or arrays of the family."""
    names = [v.name for v in family.variants]
    published = [figure.case for v in family.variants for figure in v.published if figure.case]
    arrays = [a.name for a in family.arguments if a.kind != "scalar"]
    limited = [p for v in family.variants for p in (*v.requires.multiple_of, *v.requires.at_most)]
    in_all_cases = set.intersection(
        *(set(c.values) for c in (*family.cases.values(), *family.check_cases.values()))
    )
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise WarplogError(f"{family.file}: the variant {min(twice)!r} occurs twice")
    for key, used, known in (
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
        ("variants.published.case", published, list(family.cases)),
        ("variants.requires", limited, sorted(in_all_cases)),
        ("variants.memory", tuple(a for v in family.variants for a in v.memory), arrays),
    ):
        for name in used:
            if name not in known:
                raise WarplogError(f"{family.file}: {key}: unknown name {name!r}; {suggest(name, known)}")
