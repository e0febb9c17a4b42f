"""The order in which families are introduced to a reader, and what each of them teaches: kernels/order.yaml."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from warplog.records.door import read_yaml
from warplog.records.fields import Name

_Order = dict[Name, Annotated[str, Meta(min_length=1, max_length=200)]]


def order_files(folders: Iterable[Path]) -> list[Path]:
    """Returns the files order.yaml in folders of kernels; a folder may have none."""
    return [file for folder in folders if (file := folder / "order.yaml").is_file()]


def introductions(files: Iterable[Path], families: Sequence[str]) -> dict[str, str]:
    """Returns the families in the order of the files, with what each teaches; others follow, with "".

    Raises:
        WarplogError: A file does not fit the schema.
    """
    texts = {name: text for file in files for name, text in read_yaml(file, _Order).items()}
    return {name: texts.get(name, "") for name in (*texts, *families) if name in families}
