"""Writes workflow/docs/articles.md: where each experiment of the articles is found, and what came of each claim.

    python tests/tools/articles.py

What belongs to an article is read from `credit`, `published` and `claims` of every family.yaml, verdicts from the
recorded campaigns.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from warplog.catalog.assertions import claimed
from warplog.catalog.claims import verdict_words
from warplog.catalog.family import Family, load
from warplog.core.columns import Row, number
from warplog.core.columns import text as cell
from warplog.core.files import put_between
from warplog.core.numbers import with_unit
from warplog.core.text import Table, markdown_table
from warplog.tables.files import as_rows, read_table

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "workflow" / "docs" / "articles.md"
CAMPAIGNS = ("h200", "h100")
ARTICLES = {  # how `credit` and `source` begin that name it
    "S. Boehm": "S. Boehm, How to optimize a CUDA matmul kernel for cuBLAS-like performance: a worklog",
    "A. Gordic": "A. Gordic, Inside NVIDIA GPUs: Anatomy of high performance matmul kernels",
    "P. Shankhdhar": "P. Shankhdhar, Outperforming cuBLAS on H100: a worklog (the kernels that Gordic explains)",
    "Deep dive 02": "Deep dive 02, CUDA programming",
    "Tiled matmul": "Tiled matmul, from 1.3 % to 93.7 %",
    "A tiled CUDA matmul": "A tiled CUDA matmul, Recurse Center",
}


def text() -> str:
    """Returns the part of the document that is generated: for each article its kernels, and its claims."""
    families = load([ROOT / "kernels"]).values()
    judged = [_verdicts(name) for name in CAMPAIGNS]
    parts: list[str] = []
    for author, title in ARTICLES.items():
        parts += [f"## {title}", ""]
        measured = _measured(families, author)
        if kernels := [line for family in families for line in _kernels(family, author, measured)]:
            parts += [*markdown_table(Table(("in the article", "page", "variant"), tuple(kernels))), ""]
        if claims := [line for family in families for line in _claims(family, author, judged)]:
            titles = ("claim", "", "page", "variant", *(name.upper() for name in CAMPAIGNS))
            parts += [*markdown_table(Table(titles, tuple(claims))), ""]
    return "\n".join(parts)


def _verdicts(campaign: str) -> dict[tuple[str, str], Row]:
    """Returns the verdicts on the claims whose variants are in a recorded campaign, by family and claim."""
    tables = ROOT / "results" / "recorded" / campaign / "tables"
    claims, answers = (as_rows(read_table(tables, name)) for name in ("claims", "answers"))
    codes = {(row["family"], row["id"]): row["reason"] for row in answers if row["kind"] == "claim"}
    keys = [(str(row["family"]), str(row["id"])) for row in claims]
    return {key: row for key, row in zip(keys, claims, strict=True) if codes[key] != "not_measured"}


def _measured(families: Collection[Family], author: str) -> dict[tuple[str, str], str]:
    """Returns the variants in the claims of an article, by family and name, with their names there."""
    names: dict[tuple[str, str], str] = {}
    for family in families:
        for claim in family.claims:
            if claim.formula and author in claim.source:
                kernels = {variant.rpartition(".")[2]: kernel for kernel, variant in claim.kernels.items()}
                place = _place(claim.source, author)
                for term in claim.formula.terms.values():
                    key = term.family, term.variant
                    names[key] = names.get(key) or kernels.get(term.variant, place)
    return names


def _place(credit: str, author: str) -> str:
    """Returns where in an article something is, as a text that names articles ends: "kernel 3", "chapter 4.1"."""
    named = re.search(
        rf"\b{author}[^;]*, ((?:kernel|chapter|exercise|figure)s? \d[^;]*|bank conflicts|warp-tiling)", credit
    )
    return named[1] if named else ""


def _kernels(
    family: Family, author: str, measured: Mapping[tuple[str, str], str]
) -> Iterator[tuple[str, ...]]:
    """Yields the variants of an article with their names there: credited, measured, or with a published speed."""
    for variant in family.variants:
        key = family.name, variant.name
        published = any(figure.source.startswith(author) for figure in variant.published)
        if author in variant.credit or published or key in measured:
            yield _place(variant.credit, author) or measured.get(key, ""), *key


def _claims(
    family: Family, author: str, judged: Sequence[Mapping[tuple[str, str], Row]]
) -> Iterator[tuple[str, ...]]:
    """Yields the claims of an article with the variant at which the page shows each; "" for the whole ladder."""
    order = [variant.name for variant in family.variants]
    for claim, assertion in zip(
        family.claims, claimed(family.claims, family.name, order, family.baseline), strict=True
    ):
        if author in claim.source:
            kernels = ", ".join(f"{kernel} = {variant}" for kernel, variant in claim.kernels.items())
            said = f"{claim.claim} ({kernels})" if kernels else claim.claim
            found = [_verdict(rows.get((family.name, claim.id))) for rows in judged]
            yield claim.id, said, family.name, assertion.variant, *found


def _verdict(row: Row | None) -> str:
    """Returns the verdict with the number that it is based on: "refuted, 1.02 x"."""
    if row is None:
        return "not measured yet"
    measured = number(row, "measured")
    words = verdict_words(cell(row, "verdict"), measured, cell(row, "about"))
    return ", ".join(filter(None, (words, with_unit(measured, cell(row, "unit")))))


if __name__ == "__main__":
    put_between(DOCUMENT, "articles", text())
