"""Made-up tables of the families `memory` and `ilp`: times that follow from latencies and bandwidths."""

from made_up_tables import MadeUpTables
from shipped_families import FAMILIES
from warplog.tables.view import FigureTables

MHZ = 1965.0
SMS = 132


def _latency(name: str, size: int) -> float:
    """Cycles of a hop."""
    if name in ("chase_shared", "chase_dsmem", "chase_host"):
        return {"chase_shared": 29.0, "chase_dsmem": 190.0, "chase_host": 1600.0}[name]
    l1 = 28 * 2**10 if name == "chase_max_shared" else 248 * 2**10
    level = 33.0 if size <= l1 else 270.0 if size <= 45 * 2**20 else 640.0
    return level if name == "chase_pointers" else level + 5


def _stream_us(name: str, values: dict[str, float]) -> float:
    moved = 4 * values["n"] * values["rounds"] * (1 if values["together"] else SMS)
    rate = 33000.0 if values["n"] <= 16384 else 7000.0 if values["n"] <= 2**22 else 3000.0
    flight = values["warps"] * (4 if name == "stream_4" else 1) / 16
    return moved / min(rate, rate * flight) / 1e3


def memory(failed: dict[str, str] | None = None) -> FigureTables:
    """`failed` is {variant: status}."""
    family, made = FAMILIES["memory"], MadeUpTables()
    for order, variant in enumerate(family.variants):
        name = variant.name
        about = {
            "parent": variant.parent or "",
            "is_baseline": name == family.baseline,
            "size_label": "footprint",
        }
        made.variant(
            "memory", name, order, len(family.variants), family.headline_case, limit="latency", **about
        )
        for case in family.cases.values():
            size = int(family.value(family.work.size, case))
            status = "unsupported" if variant.requires.why_not_case(case) else (failed or {}).get(name, "ok")
            hops = case.values["hops"]
            us = 5.0 + (hops * _latency(name, size) / MHZ if hops else _stream_us(name, dict(case.values)))
            moved = family.amount(family.work.bytes, case, SMS)
            made.measured("memory", name, case.name, size, us, 0.0, moved, status=status)
    for row in made.rows["measurements"]:
        row["sm_mhz"] = MHZ
    return made.tables(memory=family.baseline)


def ilp(failed: dict[str, str] | None = None) -> FigureTables:
    """An FMA takes 4 cycles; each of four schedulers issues one per cycle at most."""
    family, made = FAMILIES["ilp"], MadeUpTables()
    for order, variant in enumerate(family.variants):
        about = {"is_baseline": variant.name == family.baseline, "size_label": family.work.size_label}
        made.variant("ilp", variant.name, order, len(family.variants), family.headline_case, **about)
        for case in family.cases.values():
            warps = case.values["warps"]
            per_scheduler = -(-warps // 4)
            cycles = case.values["fmas"] * max(4 / variant.parameters["CHAINS"], per_scheduler)
            flops = family.amount(family.work.flops, case, SMS)
            status = (failed or {}).get(variant.name, "ok")
            made.measured(
                "ilp", variant.name, case.name, int(warps), cycles / MHZ, flops, 256.0, status=status
            )
    for row in made.rows["measurements"]:
        row["sm_mhz"] = MHZ
    return made.tables(ilp=family.baseline)
