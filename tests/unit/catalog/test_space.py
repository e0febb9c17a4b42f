"""The order in which a search tries settings."""

from host_family import REFERENCE, YAML
from warplog.catalog.family import load_family

SEARCHED = """
  - name: tuned
    parent: right
    idea: a search
    parameters: {A: 2, B: 2}
    tune:
      values: {A: [1, 2, 3, 4], B: [1, 2, 3]}
      threads: 32 * A
      where: []
      cases: ["64"]
      first: [{A: 4}, {A: 1, B: 3}, {A: 2, B: 2}]
"""


def test_the_default_is_tried_first_then_the_named_settings_then_every_other_once(tmp_path):
    folder = tmp_path / "scale"
    folder.mkdir()
    files = {
        "family.yaml": YAML.rstrip() + SEARCHED,
        "reference.py": REFERENCE,
        "right.cu": "",
        "tuned.cu": "",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    tried = [(s["A"], s["B"]) for s in load_family(folder / "family.yaml").variant("tuned").tune.settings()]
    assert tried[:3] == [(2, 2), (4, 2), (1, 3)]
    assert len(tried) == len(set(tried)) == 12
    assert tried[3:] != sorted(tried[3:]), "a sample at random, if the search is interrupted"
