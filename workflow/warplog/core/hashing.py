"""SHA-256 of files and of settings."""

import hashlib
import json
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.files import open_regular


def sha256_file(path: Path) -> str:
    """Returns the SHA-256 of a file's content as hexadecimal text.

    Raises:
        WarplogError: The file cannot be read or is not a regular file.
    """
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None


def sha256_of(*parts: object) -> str:
    """Returns the SHA-256 of values rendered as JSON: a fingerprint of settings."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
