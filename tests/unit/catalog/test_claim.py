"""Claims in family.yaml: which ones are valid, and the errors for those that are not."""

import math

import pytest

from warplog.catalog.claims import (
    Range,
    Term,
    condition_words,
    make_claim,
    parse_formula,
    parse_range,
    verdict_words,
)
from warplog.catalog.contract import ClaimEntry
from warplog.catalog.family import load_family
from warplog.core.errors import WarplogError


def made(**keys):
    entry = ClaimEntry(id="B1", claim="It is faster.", source="somebody", **keys)
    return make_claim(entry, "f", "1", "family.yaml")


@pytest.mark.parametrize(
    ("condition", "holds", "fails"),
    [
        (">= 5", (5, 6), (4.999,)),
        ("> 5", (5.001,), (5, 4)),
        ("<= 0.5", (0.5, -1), (0.501,)),
        ("< -1", (-1.001,), (-1, 0)),
        ("== 32", (32, 32.0), (31, 32.001)),
        ("80 .. 95", (80, 90, 95), (79.9, 95.1)),
        ("1e-2 .. 5e-2", (0.01, 0.05), (0.009, 0.051)),
    ],
)
def test_conditions_hold_at_their_edge_and_not_beside_it(condition, holds, fails):
    assert all(parse_range(condition).holds(value) for value in holds)
    assert not any(parse_range(condition).holds(value) for value in fails)


@pytest.mark.parametrize("condition", ["5", "about 5", ">= five", "=> 5", "5 .. ", ">= 5 or 1", "!= 5"])
def test_other_conditions_are_refused(condition):
    with pytest.raises(WarplogError, match=r"confirmed_if.*write '>= 5'"):
        made(measure="median_us(a)", confirmed_if=condition)


def test_terms_are_numbers_of_a_variant_at_a_case():
    formula = parse_formula(
        'median_us(a) / median_us(b, "1Mi") + sass(a, "LDG.E") + median_us(a) * sms - l2_bytes(g.c, "2")',
        "f",
        "4096",
        "here",
    )
    assert list(formula.terms.values()) == [
        Term("median_us", "f", "a", "4096"),
        Term("median_us", "f", "b", "1Mi"),
        Term("sass", "f", "a", "LDG.E"),
        Term("l2_bytes", "g", "c", "2"),
    ]
    assert formula.names == ("sms",)


@pytest.mark.parametrize(
    ("measure", "why"),
    [
        ("median_uss(a)", "unknown quantity 'median_uss'; did you mean 'median_us'"),
        ("agreement(a)", "unknown quantity 'agreement'"),
        ("median_us()", "write median_us"),
        ("median_us(a, 4096)", "write median_us"),
        ("median_us(a, case='1')", "a term is quantity"),
        ("sass(a)", "write sass"),
        ("median_us(a) > 5", "only terms"),
        ("__import__('os').system('true')", "a term is quantity"),
        ("open('x')", "unknown quantity 'open'"),
        ("[x for x in (1, 2)]", "only terms"),
        ("max(median_us(a))", "max requires 2 arguments"),
        ("'text'", "is not a number"),
        ("median_us(a) /", "is not a formula"),
        ("(" * 499, "is not a formula"),
        ("-" * 499 + "1", "is not a formula"),
        ("\0", "is not a formula"),
    ],
)
def test_what_is_no_formula_is_refused_by_name(measure, why):
    with pytest.raises(WarplogError, match=f"^family.yaml: claims: B1: measure.*{why}"):
        made(measure=measure, confirmed_if="> 1")


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"measure": "median_us(a)"},
        {"confirmed_if": "> 1"},
        {"measure": "median_us(a)", "confirmed_if": "> 1", "not_judged": "of another GPU"},
        {"measure": "median_us(a)", "about": "an H100"},
    ],
)
def test_a_claim_has_a_condition_or_says_why_not(entry):
    with pytest.raises(WarplogError, match="requires measure and confirmed_if, or not_judged"):
        made(**entry)


@pytest.mark.parametrize(
    ("condition", "unit", "words"),
    [
        (">= 2", "x", ">= 2x"),
        ("<= 0.67", "x the instructions", "<= 0.67x"),
        (">= 85", "% of the wall time", ">= 85 %"),
        ("0.99 .. 1.01", "x", "0.99 .. 1.01x"),
        ("1.99 .. 2.01", "block", "== 2"),
        ("> 0", "excess wavefronts", "> 0"),
        ("> 0", "", "> 0"),
        ("", "x", ""),
    ],
)
def test_a_condition_is_shown_with_the_unit_of_a_ratio(condition, unit, words):
    assert condition_words(condition, unit) == words


@pytest.fixture
def family_file(tmp_path, project):
    """A copy of vector_add's family.yaml with the claims of the test."""
    folder = tmp_path / "vector_add"
    folder.mkdir()
    for source in (project / "kernels" / "vector_add").glob("*"):
        if source.is_file():
            (folder / source.name).write_bytes(source.read_bytes())
    path = folder / "family.yaml"
    text = path.read_text().split("\nclaims:")[0]

    def write(claims):
        path.write_text(f"{text}\nclaims:\n{claims}")
        return path

    return write


def entry(name="D8", **keys):
    lines = {"claim": "It is so.", "source": "somebody", **keys}
    return f"  - id: {name}\n" + "".join(f"    {k}: {v!r}\n" for k, v in lines.items())


def test_a_claim_is_read_with_the_headline_case(family_file):
    claims = load_family(
        family_file(entry(measure="median_us(float4) / median_us(scalar)", confirmed_if="< 1"))
    ).claims
    assert [(c.id, c.case, c.confirmed_if) for c in claims] == [("D8", "64Mi", "< 1")]
    assert claims[0].allowed == Range(high=1.0, open=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (entry(measure="median_us(scalr)", confirmed_if="> 1"), "no variant 'scalr'; did you mean 'scalar'"),
        (entry(measure="median_us(scalar, '2Mi')", confirmed_if="> 1"), "no timed case '2Mi'; did you mean"),
        (entry(case="2Mi", measure="median_us(scalar)", confirmed_if="> 1"), "case: no timed case '2Mi'"),
        (entry(measure="median_us(scalar) / m", confirmed_if="> 1"), "unknown name 'm'; "),
        (entry(measure="median_us(scalar) + _0", confirmed_if="> 1"), "unknown name '_0'; "),
        (entry(not_judged="so") * 2, "claims: the id 'D8' occurs twice"),
        (
            entry(measure="median_us(scalar)", kernels={"kernel 2": "float4"}, confirmed_if="> 1"),
            "claims: D8: kernels: kernel 2: 'float4' is not in `measure`",
        ),
        (entry(verdict="confirmed"), "unknown key 'verdict'"),
        (entry(not_judged="x" * 201), "claims.0.not_judged"),
        (
            entry(measure="1 + " * 200 + "1", confirmed_if="> 1"),
            "claims.0.measure: .*longer than 500 characters",
        ),
        (entry("1 D", not_judged="x"), "claims.0.id"),
    ],
)
def test_what_does_not_fit_the_family_is_refused_by_name(family_file, text, why):
    with pytest.raises(WarplogError, match=why) as raised:
        load_family(family_file(text))
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(str(family_file(text)))


@pytest.mark.parametrize(
    ("verdict", "measured", "about", "words"),
    [
        ("within_noise", 1.0, "", "within noise"),
        ("not_measurable", math.nan, "", "not measurable"),
        ("not_measurable", 37.0, "", "not judged"),
        ("not_measurable", 37.0, "an A6000", "not judged: about an A6000"),
        ("not_measurable", math.nan, "an H100", "not judged: about an H100"),
    ],
)
def test_a_claim_about_another_gpu_is_not_called_unmeasurable(verdict, measured, about, words):
    assert verdict_words(verdict, measured, about) == words


def test_a_claim_about_a_gpu_has_a_condition_for_that_gpu():
    claim = made(measure="median_us(a)", about="an H100", confirmed_if="> 1")
    assert (claim.about, claim.allowed.low) == ("an H100", 1.0)
