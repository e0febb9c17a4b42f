"""Why each variant is faster or slower than its parent, in Markdown: the steps of the pages, from the tables alone."""

from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.text import escape_markdown
from warplog.tables.files import as_rows, read_table
from warplog.tables.view import FigureTables
from warplog.worklog import variant_conclusions
from warplog.worklog.texts import environment


def families(folder: Path) -> list[str]:
    """Returns the families in the tables of `folder`.

    Raises:
        WarplogError: if the table of variants is missing or not readable.
    """
    return [str(name) for name in read_table(folder, "variants")["family"].drop_duplicates()]


def markdown(tables: FigureTables, whole: bool = False) -> str:
    """Returns Markdown with what each step brought, two causes and two costs, and what bounds it.

    If `whole`, everything that changed, occupancy, traffic and long runs as well.

    Raises:
        WarplogError: if the tables hold no conclusions.
    """
    if tables.places.empty:
        raise WarplogError(
            f"{tables.family}: the table `ladder` is missing or has no row of it; make it with `snakemake tables`"
        )
    counted = tables.metrics["value"].notna() & (tables.metrics["tool"] == "ncu")
    first = as_rows(tables.measurements.head(1))[0]
    page = {
        "family": tables.family,
        "case": tables.case,
        "profiled_case": tables.profiled_case,
        "facts": ", ".join(str(first[name]) for name in ("gpu_name", "campaign") if first.get(name)),
        "method": {"counters": "ncu" if counted.any() else ""},
        "statuses": {str(row["variant"]): str(row["status"]) for row in as_rows(tables.ladder(tables.case))},
    }
    template = environment(escape_markdown).get_template("explain.md.j2")
    return (
        template.render(page=page, variants=variant_conclusions.by_variant(tables), whole=whole).lstrip("\n")
        + "\n"
    )
