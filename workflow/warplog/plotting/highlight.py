"""Which variants of a long ladder a figure with one series per variant shows in colour."""

from collections.abc import Mapping, Sequence

MOST = 6
GREY = "#c9c9c9"


def highlighted(
    speeds: Mapping[str, float], baseline: Sequence[str] = (), named: Sequence[str] = ()
) -> list[str]:
    """Returns the variants to show in colour: all of a short ladder, otherwise six of those with a speed.

    These are the baseline, the first and the fastest variant, and the variants that gained most over the fastest
    one before them. Variants in `named`, such as those in the title, come before the latter. `speeds` are in ladder
    order, larger is faster, NaN is unknown.
    """
    known = {name: speed for name, speed in speeds.items() if speed > 0}
    if len(speeds) <= MOST or not known:
        return list(speeds)
    own = {name: speed for name, speed in known.items() if name not in baseline} or known
    gains, top = {}, 0.0
    for name, speed in own.items():
        gains[name] = speed / top if top else float("inf")
        top = max(top, speed)
    kept = [name for name in baseline if name in known]
    kept += dict.fromkeys([name for name in named if name in known and name not in kept])
    fastest = max(own, key=own.__getitem__)
    for name in (fastest, *sorted(gains, key=lambda name: -gains[name])):
        if len(kept) < MOST and name not in kept:
            kept.append(name)
    return [name for name in speeds if name in kept]
