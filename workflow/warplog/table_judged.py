"""The columns of the tables that judge the others: claims and oracle."""

from collections.abc import Mapping

from warplog.table_column import KEY, ORIGIN, Column

CLAIMS: Mapping[str, Column] = {
    "family": KEY["family"],
    "id": Column("str", "", "the claim's name, in this family"),
    "claim": Column("str", "", "what is asserted"),
    "source": Column("str", "", "who asserts it"),
    "published": Column("str", "", "the figure that was published"),
    "verdict": Column("str", "", "confirmed, refuted or not_measurable"),
    "measured": Column("float", "", "value of `measure` in `unit`; missing where there is none"),
    "unit": Column("str", "", "unit of the value; empty for ratios and counts"),
    "condition": Column("str", "", "what `measured` must be for the claim to be confirmed"),
    "measure": Column("str", "", "the formula, of measurements and metrics of variants"),
    "case": Column("str", "", "the problem that is meant where the formula names none"),
    "evidence": Column("str", "", "the numbers that went into the formula"),
    "reason": Column(
        "str", "", "why the claim is not measurable; beside a verdict, remarks on the rows behind it"
    ),
    **ORIGIN,
}
ORACLE: Mapping[str, Column] = {
    "probe": Column("str", "", "what is known of the kernel"),
    **KEY,
    "quantity": Column("str", "", "what was measured; less that of another case where ` - case` follows"),
    "expected": Column("str", "", "the true value in `unit`, or a name"),
    "measured": Column("str", "", "the measured value in `unit`, or a name"),
    "deviation": Column("float", "", "measured less expected, in `unit`; none between names"),
    "tolerance": Column("str", "", "the largest deviation that is right; `exact`: none"),
    "unit": Column("str", "", "unit of the values"),
    "verdict": Column("str", "", "right, wrong or not_measured"),
    "reason": Column("str", "", "why there is no value; a remark where there is one"),
    **ORIGIN,
}
