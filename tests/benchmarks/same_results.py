"""Compares two results folders: all columns of all tables, all figures and all MLflow runs.

    python tests/benchmarks/same_results.py BEFORE AFTER

For changes to the code that must not change results. Prints the differences by column; differences in text are marked
`wording`. The exit status is 1 if a number, a status, a key or a run differs.
"""

import sqlite3
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

WORDING = {"reason", "idea", "title", "meaning", "claim", "evidence", "agreement", "size_label", "credit"}
WORDING |= {"condition", "measure", "source", "published_source", "remark"}


def tables(before: Path, after: Path) -> list[str]:
    """Returns the differences between the tables of two folders."""
    found = []
    names = {path.name for path in before.glob("*.parquet")} | {path.name for path in after.glob("*.parquet")}
    for name in sorted(names):
        if not ((before / name).is_file() and (after / name).is_file()):
            found.append(f"{name}: only in one folder")
            continue
        one, two = pd.read_parquet(before / name), pd.read_parquet(after / name)
        if len(one) != len(two) or list(one) != list(two):
            found.append(f"{name}: {one.shape} {list(one)} -> {two.shape} {list(two)}")
            continue
        for column in one:
            same = (one[column] == two[column]) | (one[column].isna() & two[column].isna())
            if not same.all():
                label = "wording" if column in WORDING else "DIFFERS"
                first = int(np.flatnonzero(~same.to_numpy(dtype=bool))[0])
                values = f"{one[column].iloc[first]!r} -> {two[column].iloc[first]!r}"
                found.append(
                    f"{label}: {name}: {column}: {(~same).sum()} of {len(one)} rows, first: {values}"
                )
    return found


def figures(before: Path, after: Path) -> list[str]:
    """Differences between the numbers behind the figures; pixels that differ with equal numbers are wording."""
    names = {
        p.relative_to(folder).with_suffix("").as_posix()
        for folder in (before, after)
        for p in folder.glob("*/*.png")
    }
    found = []
    for name in sorted(names):
        files = [folder / f"{name}.png" for folder in (before, after)]
        if not all(file.is_file() for file in files):
            found.append(f"DIFFERS: {name}.png: only in one folder")
            continue
        one, two = (pd.read_csv(file.with_suffix(".csv")) for file in files)
        numbers = [column for column in one.select_dtypes("number") if column in two]
        if len(one) != len(two) or not one[numbers].equals(two[numbers]):
            found.append(f"DIFFERS: {name}.csv: {one.shape} -> {two.shape}")
        elif set(one) != set(two):
            found.append(f"wording: {name}.csv: columns {sorted(set(one) ^ set(two))}")
        pixels = [np.asarray(Image.open(file).convert("RGB")) for file in files]
        if pixels[0].shape != pixels[1].shape or not np.array_equal(*pixels):
            found.append(f"wording: {name}.png: other pixels, same numbers")
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
    return int(any(not line.startswith("wording") for line in lines))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
