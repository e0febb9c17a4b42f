"""What several processes discarded is counted together."""

from test_pooling import SETTINGS, rest

from warplog.measure.pooling import pooled


def test_discarded_launches_of_all_processes_are_added():
    found = pooled([rest(1, [10.0] * 9, discarded=3), rest(2, [10.0] * 9, discarded=4)], [], SETTINGS)
    assert found["cold"]["discarded"] == 7
