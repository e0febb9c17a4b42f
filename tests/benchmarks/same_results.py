"""Compares two results folders: the tables, figures and MLflow runs that both have, and what only one of them has.

    python tests/benchmarks/same_results.py BEFORE AFTER

For changes to the code that must not change results. Prints the differences by column; differences in text are marked
`wording`, columns of one side `columns`. The exit status is 1 if a number, a status, a row, a table or a run differs.
"""

import sqlite3
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

WORDING = {"reason", "idea", "title", "meaning", "claim", "evidence", "agreement", "size_label", "credit"}
WORDING |= {"condition", "measure", "source", "published_source", "remark"}
KEYS = (
    "gpu",
    "board",
    "table",
    "column",
    "family",
    "variant",
    "case",
    "regime",
    "id",
    "stage",
    "tool",
    "kernel",
    "launch",
)
KEYS += ("file", "line", "metric", "quantity", "against", "said_of")


def tables(before: Path, after: Path) -> list[str]:
    """Returns the differences between the tables of two folders: rows by key, in the columns that both have."""
    found = []
    sides = [{path.name for path in folder.glob("*.parquet")} for folder in (before, after)]
    found += [f"DIFFERS: {name}: only in {before}" for name in sorted(sides[0] - sides[1])]
    found += [f"DIFFERS: {name}: only in {after}" for name in sorted(sides[1] - sides[0])]
    for name in sorted(sides[0] & sides[1]):
        one, two = (pd.read_parquet(folder / name) for folder in (before, after))
        found += [f"columns: {name}: {column} only in {before}" for column in one if column not in two]
        found += [f"columns: {name}: {column} only in {after}" for column in two if column not in one]
        key = [column for column in KEYS if column in one and column in two]
        one, two = (by_key(rows, key) for rows in (one, two))
        for rows, other, folder in ((one, two, before), (two, one, after)):
            if len(alone := rows.index.difference(other.index)):
                found.append(f"DIFFERS: {name}: {len(alone)} rows only in {folder}, first: {alone[0]}")
        both = one.index.intersection(two.index)
        one, two = one.loc[both], two.loc[both]
        for column in one.columns.intersection(two.columns):
            same = (one[column] == two[column]) | (one[column].isna() & two[column].isna())
            if not same.all():
                label = "wording" if column in WORDING else "DIFFERS"
                first = both[~same.to_numpy(dtype=bool)][0]
                values = f"{first}: {one[column][first]!r} -> {two[column][first]!r}"
                found.append(
                    f"{label}: {name}: {column}: {(~same).sum()} of {len(both)} rows, first: {values}"
                )
    return found


def by_key(rows: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Returns rows by their key; rows of a series, which have the same key, are numbered in their order."""
    rows = rows.assign(**{name: rows[name].astype(str) for name in key})
    return rows.set_index([*key, rows.groupby(key, sort=False).cumcount().rename("number")])


def figures(before: Path, after: Path) -> list[str]:
    """Returns the differences between the numbers behind the figures; other pixels with equal numbers are wording."""
    sides = [{p.relative_to(f).as_posix() for p in f.glob("*/*.csv")} for f in (before, after)]
    found = [f"DIFFERS: {name}: only in {before}" for name in sorted(sides[0] - sides[1])]
    found += [f"DIFFERS: {name}: only in {after}" for name in sorted(sides[1] - sides[0])]
    for name in sorted(sides[0] & sides[1]):
        files = [folder / name for folder in (before, after)]
        one, two = (pd.read_csv(file) for file in files)
        numbers = [column for column in one.select_dtypes("number") if column in two]
        if len(one) != len(two) or not one[numbers].equals(two[numbers]):
            found.append(f"DIFFERS: {name}: {one.shape} -> {two.shape}")
        elif set(one) != set(two):
            found.append(f"columns: {name}: {sorted(set(one) ^ set(two))}")
        pixels = [np.asarray(Image.open(file.with_suffix(".png")).convert("RGB")) for file in files]
        if pixels[0].shape != pixels[1].shape or not np.array_equal(*pixels):
            found.append(f"wording: {name}: other pixels, same numbers")
    return found


def runs(before: Path, after: Path) -> list[str]:
    """Returns runs, metrics, parameters and tags that differ between two SQLite stores."""
    found = []
    for what, query in {
        "metrics": "select t.value, m.key, m.step, m.value from metrics m",
        "params": "select t.value, m.key, 0, m.value from params m",
        "tags": "select t.value, m.key, 0, m.value from tags m",
    }.items():
        sides = []
        for store in (before, after):
            joined = f"{query} join tags t on t.run_uuid = m.run_uuid and t.key = 'warplog.key'"
            with sqlite3.connect(store) as link:
                sides.append({row[:3]: row[3] for row in link.execute(joined)})
        one, two = sides
        changed = [key for key in one.keys() & two.keys() if one[key] != two[key]]
        found += [f"DIFFERS: {what}: {key} in one store only" for key in sorted(one.keys() ^ two.keys())[:20]]
        label = "DIFFERS" if what == "metrics" else "wording"
        for name in sorted({key[1] for key in changed}):
            of_name = [key for key in changed if key[1] == name]
            values = f"{str(one[of_name[0]])[:200]!r} -> {str(two[of_name[0]])[:200]!r}"
            found.append(f"{label}: {what}: {name}: {len(of_name)} runs, first {of_name[0][0]}: {values}")
    return found


def main(before: Path, after: Path) -> int:
    """Prints all differences; returns 1 if any of them is more than wording."""
    lines = [
        *tables(before / "tables", after / "tables"),
        *figures(before / "figures", after / "figures"),
        *runs(before / "mlflow.db", after / "mlflow.db"),
    ]
    print("\n".join(lines) or "no difference")
    return int(any(line.startswith("DIFFERS") for line in lines))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
