"""What several processes discarded is counted together."""

from test_pooling import entry, rest


def test_discarded_launches_of_all_processes_are_added():
    found = entry([rest(1, [10.0] * 9, discarded=3), rest(2, [10.0] * 9, discarded=4)])
    assert found.cold is not None
    assert found.cold.discarded == 7
