"""Where results lie: stage first, then the key in one fixed order, so that rule, folder and log agree."""

from pathlib import Path

RESULTS = Path("results")
RECORDED = RESULTS / "recorded"
MEASURED_STAGES = ("check", "time", "profile", "extract")


def build_folder(root: Path, arch: str, family: str, variant: str) -> Path:
    """The folder of one build below `root` (results, or a recorded campaign)."""
    return root / "build" / arch / family / variant


def record(root: Path, stage: str, gpu: str, family: str, variant: str, suffix: str = ".json") -> Path:
    """A measured stage's record below `root` = results: results/<stage>/<gpu>/<family>/<variant>.json."""
    return root / stage / gpu / family / f"{variant}{suffix}"


def recorded_root(name: str) -> Path:
    """The folder of a recorded campaign."""
    return RECORDED / name
