"""Loads kernel families and their variants from folders that contain a family.yaml."""

import importlib.util
import math
import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType

from msgspec.structs import asdict, replace

from warplog.catalog.assertions import check_ceilings, check_predictions
from warplog.catalog.claims import Claim, check_claims, make_claim
from warplog.catalog.compiling import HEADERS, Compile, check_place, extended, root_of
from warplog.catalog.contract import (
    Argument,
    Case,
    FamilyFile,
    Tolerance,
    Tolerances,
    VariantEntry,
    matched,
    probed,
)
from warplog.catalog.imported import imported
from warplog.catalog.includes import included, plain
from warplog.catalog.languages import CUDA, check_module, defined_names, source_of
from warplog.catalog.space import Space, space_of
from warplog.core import formula, paths
from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file, sha256_of
from warplog.core.schema import load_yaml, refuse_empty, suggest
from warplog.metrics.occupancy import LIMITS, SmLimits
from warplog.records import door
from warplog.records.build import Compiled
from warplog.records.remarks import TuneRemark

# The types that an argument by value may have.
SCALARS = ("float32", "float64", "int8", "uint8", "int16", "int32", "uint32", "int64", "bool")
# The functions of reference.py.
_REFERENCE = {"make_inputs": "make_inputs(xp, rng, case)", "reference": "reference(xp, inputs, case)"}


# Variants and families are never written: what their own fields are called there must only differ from family.yaml.
class Variant(VariantEntry, frozen=True, kw_only=True, rename="upper"):
    """One variant of a family: its entry in family.yaml, and what it stands for.

    Attributes:
        family: name of the family.
        folder: the folder of the family.yaml that defines the variant.
        file: the source, .cu or .py, or the shared library in its place.
        parameters: compile-time parameters; after `winners.with_winners` those for a GPU.
        compile: further sources and options of the compiler, those of the family included.
        tune: the space that `snakemake tune` searches; None if there is none.
        remarks: what to know of the parameters, see warplog.catalog.winners.
        arguments: what the launcher takes; () for the arguments of the family.
    """

    family: str
    folder: Path
    file: Path
    compile: Compiled
    tune: Space | None
    remarks: Sequence[TuneRemark] = ()
    arguments: tuple[Argument, ...] = ()

    @property
    def is_python(self) -> bool:
        """Whether the launcher is a function of a Python module."""
        return self.language != CUDA

    def dynamic_shared_bytes(self, sm: SmLimits) -> int:
        """Returns the dynamic shared memory per block that family.yaml states for such SMs; 0 if it states none."""
        if self.tune and not self.requires.dynamic_shared_bytes:
            return self.tune.block_dynamic_shared_bytes(self.parameters)
        of_gpu = {"sm_shared_bytes": sm.shared_bytes, "reserved_shared_bytes": sm.reserved_shared_bytes}
        where = f"{self.folder / 'family.yaml'}: variant {self.name!r}: dynamic_shared_bytes"
        return int(formula.evaluate(self.requires.dynamic_shared_bytes, {**of_gpu, **self.parameters}, where))

    def source_hashes(self) -> dict[Path, str]:
        """Returns the SHA-256 of the source and of its headers or modules, by path."""
        return {path: sha256_file(path) for path in (self.file, *self.headers())}

    def include_folders(self) -> tuple[Path, ...]:
        """Returns the folders in which the compiler looks for headers, in order.

        These are the source's own, those of `compile`, the family's, its ../include, and warplog's.
        """
        own = (_place(self.folder, name) for name in self.compile.include)
        folders = (self.file.parent, *own, self.folder, self.folder.parent / "include", HEADERS)
        return tuple(dict.fromkeys(folders))

    def further_sources(self) -> list[Path]:
        """Returns the sources that are compiled besides `file`."""
        return [_place(self.folder, name) for name in self.compile.sources]

    def headers(self) -> list[Path]:
        """Returns the other files of the variant: further sources, and what all of them include or import.

        See warplog.catalog.includes and warplog.catalog.imported.
        """
        if self.prebuilt:
            return []
        if self.is_python:
            return imported(self.file, self.include_folders())
        sources = self.further_sources()
        headers = {file for s in (self.file, *sources) for file in included(s, self.include_folders())}
        return sorted({*sources, *headers} - {self.file})

    def content(self) -> tuple[object, ...]:
        """Returns the hashes of all files that are compiled, and the options of the compiler without parameters."""
        options = self.compile.record()
        headers = [sha256_file(path) for path in self.headers()]
        return sha256_file(self.file), headers, *([options] if options else [])

    def fingerprint(self) -> str:
        """Returns the SHA-256 of source, headers, options, parameters and language.

        It identifies builds and measurements.
        """
        source, headers, *options = self.content()
        language = (self.language,) if self.is_python else ()  # recorded hashes of CUDA sources have none
        return sha256_of(source, headers, dict(self.parameters), *options, *language)


class Family(FamilyFile, frozen=True, kw_only=True, rename="upper", dict=True):
    """A kernel family: its family.yaml, and what its names stand for.

    Attributes:
        folder: folder of family.yaml.
        profile_cases: names of the cases that the profilers capture.
        baseline: variant that ratios refer to; "" for none.
    """

    folder: Path
    variants: tuple[Variant, ...]
    claims: tuple[Claim, ...]

    @cached_property  # each formula that is evaluated names it
    def file(self) -> Path:
        """The family.yaml of this family."""
        return self.folder / "family.yaml"

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """The timed cases by name, with the defaults of their parameters."""
        return {name: Case(name, {**self.defaults, **values}) for name, values in self.timed.items()}

    @cached_property
    def check_cases(self) -> Mapping[str, Case]:
        """The cases for the correctness check by name, with the defaults of their parameters."""
        return {name: Case(name, {**self.defaults, **values}) for name, values in self.checked.items()}

    def case_values(self) -> dict[str, dict[str, float]]:
        """Returns the values of all cases, timed or not, by their names."""
        return {name: dict(self.case(name).values) for name in (*self.cases, *self.check_cases)}

    @property
    def of_oracle(self) -> bool:
        """Whether the answers are known in advance, so that campaigns leave the family out unless it is named."""
        return bool(self.probes) or any(v.planted for v in self.variants)

    @property
    def tolerances(self) -> Mapping[str, Tolerances]:
        """The tolerances of outputs with one of their own."""
        return {a.name: a.tolerance for a in self.arguments if a.tolerance}

    def contract(self) -> str:
        """Returns the hash of what results of a worker depend on, apart from the variants.

        Keys that only describe (title, summary, claims, ...) are not part of it, nor are amounts of work.
        """
        parts = self.arguments, self.tolerance, self.measuring, self.profile_cases
        return sha256_of(self.case_values(), list(self.cases), door.plain(parts))

    def variant(self, name: str) -> Variant:
        """Returns the variant with this name.

        Raises:
            WarplogError: There is none; the text suggests a similar name.
        """
        for variant in self.variants:
            if variant.name == name:
                return variant
        names = [v.name for v in self.variants]
        raise WarplogError(f"{self.file}: no variant {name!r}; {suggest(name, names)}")

    def case(self, name: str) -> Case:
        """Returns the timed or check case with this name."""
        return self.cases.get(name) or self.check_cases[name]

    def traced_cases(self, variant: Variant) -> tuple[str, ...]:
        """Returns the cases of a variant whose accesses are traced: see `accesses` of the contract."""
        smallest = sorted(self.cases.values(), key=lambda case: sum(map(math.prod, self.shapes(case))))
        named, timed = (
            [case.name for case in cases if not variant.requires.why_not_case(case)]
            for cases in (map(self.case, self.accesses), smallest)
        )
        return tuple(named or timed[:1] or [smallest[0].name])

    def ladder(self, chosen: Sequence[Variant]) -> tuple[Variant, ...]:
        """Returns the family's variants in order; drafts are included only if one of `chosen` is a draft."""
        with_drafts = any(v.draft for v in chosen)
        return tuple(v for v in self.variants if with_drafts or not v.draft)

    def value(self, text: str | float, case: Case) -> float:
        """Evaluates a formula of this family (size, a dimension) for one case."""
        return formula.evaluate(text, case.values, f"{self.file} ({case.name})")

    def amount(self, text: str | float, case: Case, sms: float) -> float:
        """Evaluates `work.flops` or `work.bytes` for one case on a GPU with this number of SMs."""
        return formula.evaluate(text, {"sms": sms, **case.values}, f"{self.file} ({case.name})")

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

    def tolerance_of(self, output: str, case: Case) -> Tolerance:
        """Returns the tolerance of an output for one case, its own or that of the family.

        Raises:
            WarplogError: The tolerance depends on the case, and no condition holds for this one.
        """
        rules = self.tolerances.get(output, self.tolerance)
        if isinstance(rules, Tolerance):
            return rules
        where = f"{self.file} ({case.name})"
        for rule in rules:
            if formula.holds(rule.when, case.values, where):
                return rule
        conditions = ", ".join(rule.when for rule in rules)
        raise WarplogError(f"{where}: {output} has no tolerance: none of its conditions holds: {conditions}")

    def shapes(self, case: Case) -> list[tuple[int, ...]]:
        """Returns the shapes of all arrays for one case, in argument order, without workspaces."""
        return [self.shape(a, case) for a in self.arguments if a.kind not in ("scalar", "workspace")]

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


def load(folders: Sequence[Path], only: Collection[str] | None = None) -> dict[str, Family]:
    """Loads all families in `folders` (each `<folder>/<family>/family.yaml`) or those named `only`, by name.

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
            if only is not None and path.parent.name not in only:
                continue
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
        WarplogError: The file does not fit its type, its baseline cannot be borrowed, or `check_family` fails.
    """
    family = _with_borrowed_baseline(_read(path))
    check_family(family)
    return family


def _read(path: Path) -> Family:
    """Returns the content of a family.yaml that fits its type, unchecked."""
    data = load_yaml(path)
    file = door.decode(data, FamilyFile, str(path))
    refuse_empty(data, str(path), allowed=("defines", "parent"))
    names = (*file.timed, *file.checked)
    resolved = {
        "profile_cases": matched(file.profile_cases, names),
        "accesses": matched(file.accesses, names),
        "variants": tuple(_variant(entry, file, path.parent) for entry in file.variants),
        "claims": tuple(make_claim(c, file.name, file.headline_case, str(path)) for c in file.claims),
        "probes": tuple(replace(probe, cases=matched(probe.cases, names)) for probe in file.probes),
    }
    return Family(**{**asdict(file), **resolved}, folder=path.parent)


def _with_borrowed_baseline(family: Family) -> Family:
    """Returns the family with a variant of another one as its last variant, if `baseline` is "<family>.<variant>".

    The other family lies beside this one or in the project's kernels/. Its launcher gets the arguments by name.

    Raises:
        WarplogError: there is no such variant, this family lacks one of its arguments, or the other family lacks one of
            the timed cases or has other shapes there.
    """
    lender_name, _, name = family.baseline.rpartition(".")
    if not lender_name:
        return family
    where = f"{family.file}: baseline: {family.baseline!r}"
    places = [folder / lender_name for folder in (family.folder.parent, paths.project() / "kernels")]
    folder = next((place for place in places if (place / "family.yaml").is_file()), None)
    if folder is None or lender_name == family.name:
        raise WarplogError(f"{where}: no other family {lender_name!r} in {' or '.join(map(str, places))}")
    lender = _read(folder / "family.yaml")
    variant = lender.variant(name)
    _check_lender(family, lender, where)
    published = tuple(
        figure for figure in variant.published if not figure.case or figure.case in family.cases
    )
    of_ladder = {"parent": None, "cause": None, "decoy": None, "planted": None, "predicts": ()}
    alone = replace(variant, **of_ladder, draft=False, tune=None, published=published)
    borrowed = replace(alone, family=family.name, arguments=lender.arguments)
    return replace(family, baseline=name, variants=(*family.variants, borrowed))


def _check_lender(family: Family, lender: Family, where: str) -> None:
    own = {a.name: a for a in family.arguments}
    for argument in lender.arguments:
        ours = own.get(argument.name)
        if ours is None or (ours.kind, ours.dtype) != (argument.kind, argument.dtype):
            has = f"the one here is {ours.kind}, {ours.dtype}" if ours else f"known: {', '.join(own)}"
            wanted = f"{argument.name!r} ({argument.kind}, {argument.dtype})"
            raise WarplogError(f"{where}: its launcher takes the argument {wanted}; {has}")
    for case in family.cases.values():
        if case.name not in lender.cases:
            names = ", ".join(lender.cases)
            raise WarplogError(f"{where}: {lender.name} has no case {case.name!r}; known: {names}")
        for argument in lender.arguments:
            here, there = (
                f.shape(a, f.cases[case.name]) for f, a in ((family, own[argument.name]), (lender, argument))
            )
            if here != there:
                shapes = f"{argument.name} is {list(here)} here and {list(there)} in {lender.name}"
                raise WarplogError(f"{where}: case {case.name!r}: {shapes}; use the same shapes")


def _place(folder: Path, name: str) -> Path:
    """Returns a path given relative to the folder of family.yaml, without `..` if that is the same file."""
    return plain(folder / name) if ".." in name else folder / name


def _variant(entry: VariantEntry, family: FamilyFile, folder: Path) -> Variant:
    where = f"{folder / 'family.yaml'}: variant {entry.name!r}"
    if isinstance(entry.calls, str):
        source = entry.calls
        unused = {
            "file": entry.source,
            "language": entry.language != CUDA,
            "compile": entry.own_options != Compile(),
            "parameters": entry.parameters,
            "tune": entry.search,
        }
        if named := [key for key, value in unused.items() if value]:
            raise WarplogError(f"{where}: library {source!r} is compiled already; remove {named[0]!r}")
    else:
        source = source_of(entry, where)
    shared = family.shared_options if entry.language == CUDA and not entry.prebuilt else Compile()
    return Variant(
        **asdict(entry),
        family=family.name,
        folder=folder,
        file=_place(folder, source),
        compile=extended(shared, entry.own_options, f"{where}: compile"),
        tune=space_of(entry, where),
    )


def check_family(family: Family) -> None:
    """Checks a family beyond its types.

    Raises:
        WarplogError: A name is unknown, a formula cannot be evaluated, a file is missing or outside the folder, or
            reference.py lacks a function.
    """
    if family.folder.name != family.name:
        raise WarplogError(f"{family.file}: family {family.name!r} must be in a folder of that name")
    _check_names(family)
    _check_parents(family)
    _check_reference(family.folder / "reference.py")
    roots = {folder: root_of(folder) for folder in {v.folder for v in family.variants}}
    for variant in family.variants:
        _check_variant(family, variant, roots[variant.folder])
    names = [v.name for v in family.variants]
    for variant in family.variants:
        here = f"{family.file}: variant {variant.name!r}"
        check_predictions(variant, family.name, family.headline_case, names, family.cases, here)
    check_claims(family.claims, family.name, names, family.cases, str(family.file))
    check_ceilings(family.ceilings, family.name, family.headline_case, names, family.cases, str(family.file))
    for case in (*family.cases.values(), *family.check_cases.values()):
        for argument in family.arguments:
            _check_shape(family, argument, case)
            family.dtype(argument, case)
            if argument.kind == "scalar":
                _check_scalar(family, argument, case)
        _check_work(family, case)


def _check_scalar(family: Family, argument: Argument, case: Case) -> None:
    """Checks that an argument by value has a type that can be one, and in each case a value that the type holds."""
    if argument.dtypes:
        raise WarplogError(
            f"{family.file}: {argument.name}: only the dtype of an array may depend on the case"
        )
    if argument.dtype not in SCALARS:
        by_value = f"a scalar is one of {', '.join(SCALARS)}"
        raise WarplogError(f"{family.file}: argument {argument.name!r}: {argument.dtype}: {by_value}")
    if argument.name not in case.values:
        raise WarplogError(f"{family.file}: case {case.name!r} has no value for {argument.name!r}")
    value = case.values[argument.name]
    unsigned, _, bits = argument.dtype.partition("int")
    low = 0 if unsigned else -(2 ** int(bits or 1) // 2)
    if bits and (value != int(value) or not low <= value < low + 2 ** int(bits)):
        misfit = f"{argument.name}: {value} is no {argument.dtype}"
        raise WarplogError(
            f"{family.file}: case {case.name!r}: {misfit}; correct it, or the dtype of the argument"
        )


def _check_work(family: Family, case: Case) -> None:
    """Checks that the amounts of work can be evaluated and are none below 0; a timed case moves at least a byte."""
    results = [a.name for a in family.arguments if a.kind in ("output", "inout")]
    lengths = [family.tolerance_of(name, case).reduction_length for name in results]
    with_sms = {"sms": 1, **case.values}
    for key, text, values in (
        ("work.flops", family.work.flops, with_sms),
        ("work.bytes", family.work.bytes, with_sms),
        ("work.size", family.work.size, case.values),
        *(("tolerance.reduction_length", length, case.values) for length in lengths),
    ):
        where = f"{family.file}: {key} (case {case.name!r})"
        amount = formula.evaluate(text, values, where)
        least = 1 if key == "work.bytes" and case.name in family.cases else 0
        if amount < least:
            raise WarplogError(
                f"{where}: {text!r} gives {amount:g}, not at least {least}; correct it or the case"
            )


def _check_shape(family: Family, argument: Argument, case: Case) -> None:
    """Checks that the dimensions of an array are whole numbers, and that it has elements unless it need not."""
    key, least = ("bytes", 0) if argument.kind == "workspace" else ("shape", 1)
    may_be_empty = family.empty_arrays and case.name in family.check_cases
    for text in argument.shape:
        where = f"{family.file}: argument {argument.name!r}: {key} (case {case.name!r})"
        size = formula.evaluate(text, case.values, where)
        if size != int(size):
            raise WarplogError(
                f"{where}: {text!r} gives {size:g}, not a whole number; divide with // or ceil()"
            )
        if size < 0 or (size < least and not may_be_empty):
            allow = "" if size else "; `empty_arrays: true` allows it in check cases"
            raise WarplogError(f"{where}: {text!r} gives {size:g}; a size is at least {least}{allow}")


def _check_parents(family: Family) -> None:
    """Checks that the parents of each variant lead to one without a parent."""
    parents = {v.name: v.parent for v in family.variants}
    for name in parents:
        line = [name]
        while parent := parents[line[-1]]:
            if parent in line:
                circle = " -> ".join([*line[line.index(parent) :], parent])
                raise WarplogError(
                    f"{family.file}: variant {line[-1]!r}: parent: {parent!r} makes a circle ({circle}); name the"
                    " variant that it improves on, or null if it is the first"
                )
            line.append(parent)


def _check_variant(family: Family, variant: Variant, root: Path) -> None:
    """Checks that the files of a variant are in `root`, its macros, and that its requirements can be evaluated."""
    where = f"{family.file}: variant {variant.name!r}"
    key = "library" if variant.prebuilt else "file"
    check_place(root, variant.folder, os.path.relpath(variant.file, variant.folder), f"{where}: {key}")
    for name in variant.compile.sources:
        check_place(root, variant.folder, name, f"{where}: compile.sources")
    for name in variant.compile.include:
        check_place(root, variant.folder, name, f"{where}: compile.include", is_folder=True)
    if variant.is_python:
        check_module(variant.file)
    options = {
        "memory": bool(variant.memory),
        "tune": variant.tune is not None,
        "compile": bool(variant.compile.record()),
    }
    for option, is_used in options.items():
        if is_used and variant.is_python:
            raise WarplogError(
                f"{where}: {option} requires language: {CUDA}, not {variant.language}; remove the key"
            )
    if twice := variant.parameters.keys() & variant.compile.defines.keys():
        raise WarplogError(f"{where}: {min(twice)!r} is in `parameters` and in `compile.defines`; remove one")
    for case in (*family.cases.values(), *family.check_cases.values()):
        for text in variant.requires.where:
            formula.holds(text, case.values, f"{where}: requires.where ({case.name})")
    if (least := min(map(variant.dynamic_shared_bytes, LIMITS.values()))) < 0:
        raise WarplogError(f"{where}: dynamic_shared_bytes: is {least}; correct the formula")


def _check_reference(path: Path) -> None:
    """Checks that reference.py defines its functions, without running it: planning imports no array library."""
    needed = f"it must define {' and '.join(_REFERENCE.values())}"
    if not path.is_file():
        raise WarplogError(f"{path}: the file is missing; {needed}")
    defined = defined_names(path)
    for name in _REFERENCE:
        if name not in defined:
            raise WarplogError(f"{path}: the function {name} is missing; {needed}")


def _check_names(family: Family) -> None:
    """Checks that all names refer to cases, variants or arrays of the family."""
    names = [v.name for v in family.variants]
    arrays = [a.name for a in family.arguments if a.kind != "scalar"]
    results = [a.name for a in family.arguments if a.kind in ("output", "inout")]
    in_all_cases = set.intersection(
        *(set(c.values) for c in (*family.cases.values(), *family.check_cases.values()))
    )
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise WarplogError(f"{family.file}: the variant {min(twice)!r} occurs twice")
    for key, used, allowed in (
        ("profile_cases", family.profile_cases, [*family.cases, *family.check_cases]),
        ("headline_case", (family.headline_case,), [c for c in family.profile_cases if c in family.cases]),
        ("measuring.hot_cases", family.measuring.hot_cases, list(family.cases)),
        ("probes", probed(family.probes), [*family.cases, *family.check_cases]),
        ("baseline", (family.baseline,) if family.baseline else (), names),
        ("timeline", tuple(family.timeline), names),
        ("timeline", tuple(family.timeline.values()), [*family.cases, *family.check_cases]),
        ("accesses", family.accesses, [*family.cases, *family.check_cases]),
        ("arguments.tolerance", tuple(family.tolerances), results),
        *(
            (f"variant {v.name!r}: {key}", used, allowed)
            for v in family.variants
            for key, used, allowed in (
                ("parent", (v.parent,) if v.parent else (), names),
                ("tune.cases", v.tune.cases if v.tune else (), list(family.cases)),
                ("published.case", [p.case for p in v.published if p.case], list(family.cases)),
                ("requires", (*v.requires.multiple_of, *v.requires.at_most), sorted(in_all_cases)),
                ("memory", tuple(v.memory), arrays),
            )
        ),
    ):
        for name in used:
            if name not in allowed:
                raise WarplogError(f"{family.file}: {key}: unknown name {name!r}; {suggest(name, allowed)}")
