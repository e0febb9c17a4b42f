"""What pages and `explain` say of a step that a duel decides."""

from dataclasses import replace

import pytest
from worklog_pages import uncharted

from warplog import worklog
from warplog.tables.conclusions import Duel, cells, columns
from warplog.tables.files import as_frame
from warplog.worklog import explain

DUEL = Duel(
    *("sgemm", "warptile", "vectorized", "4096", "ok", "", "", "FASTER", ""),
    us=99.6, against_us=100.0, gain_pct=0.371, low_pct=0.31, high_pct=0.43, floor_pct=0.06, processes=4,
)  # fmt: skip


def with_duel(tables, duel, **sources):
    """The tables with a duel of the sources that the campaign measured."""
    own = tables.variants.set_index("variant")["source_sha256"]
    duel = replace(duel, **{"source_sha256": own["warptile"], "against_sha256": own[duel.against], **sources})
    return replace(tables, duels=as_frame([cells(duel)], columns(Duel), "duels"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "Faster by a duel at 4096: 0.37 % in speed (0.31 % to 0.43 %)."),
        (
            {"word": "SLOWER", "gain_pct": -0.37, "low_pct": -0.43, "high_pct": -0.31},
            "Slower by a duel at 4096: \u22120.37 % in speed (\u22120.43 % to \u22120.31 %).",
        ),
        ({"word": "SAME"}, "As fast by a duel at 4096: "),
        ({"word": "AMBIGUOUS"}, "Not decided by a duel at 4096: "),
    ],
)
def test_the_step_says_what_a_duel_found(recorded, change, said):
    assert said in explain.markdown(with_duel(recorded, replace(DUEL, **change)))


def test_its_numbers_on_pages_are_cells_of_the_table(recorded):
    html = worklog.html(uncharted(with_duel(recorded, DUEL)), "")
    assert '<data value="0.371" data-cell="duels/sgemm/warptile/gain_pct">0.37 %</data>' in html


@pytest.mark.parametrize("side", ["source_sha256", "against_sha256"])
def test_a_duel_of_another_source_or_without_a_verdict_is_not_shown(recorded, side):
    assert "by a duel" not in explain.markdown(with_duel(recorded, DUEL, **{side: "0" * 64}))
    unknown = replace(DUEL, status="crashed", word="")
    assert "by a duel" not in explain.markdown(with_duel(recorded, unknown))
