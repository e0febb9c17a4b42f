"""Addresses of tracking stores: which one is used, and what of it may be shown."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from warplog.core.errors import WarplogError

_ADDRESS = "MLFLOW_TRACKING_URI"
_SERVERS = ("http", "https")
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")


def tracking_uri(default: str, environment: Mapping[str, str] = os.environ) -> str:
    """Returns MLFLOW_TRACKING_URI if it is set, else `default`."""
    return environment.get(_ADDRESS, "").strip() or default


def sqlite_file(uri: str) -> Path | None:
    """Returns the database file of an SQLite store; None for any other store."""
    return Path(uri.removeprefix("sqlite:///").split("?")[0]) if uri.startswith("sqlite:///") else None


def own_file(default: str) -> Path | None:
    """Returns the SQLite file of the configured store; None if it is not SQLite or MLFLOW_TRACKING_URI is set."""
    return sqlite_file(default) if _ADDRESS not in os.environ else None


def is_server(uri: str) -> bool:
    """Returns whether the store is an MLflow server, which is addressed by HTTP."""
    return uri.partition("://")[0] in _SERVERS


def is_database(uri: str) -> bool:
    """Returns whether the store is a database that MLflow opens itself, SQLite included."""
    return uri.partition("://")[0].split("+")[0] in _DATABASES


def shown(uri: str) -> str:
    """Returns the address without user name, password, query and fragment.

    An address that cannot be divided with certainty, or of a store that warplog does not know, such as
    databricks://PROFILE, is reduced to its scheme.
    """
    scheme, mark, _ = uri.partition("://")
    if scheme.startswith("sqlite"):
        return uri.split("?")[0]
    if not mark:
        return "…" if "@" in uri else uri.split("?")[0]
    if not (is_server(uri) or is_database(uri)):
        return f"{scheme}://…"
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises ValueError if the password contains "/", "?" or "#" and is cut there
    except ValueError:
        return f"{scheme}://…"
    if "@" in parts.path + parts.query + parts.fragment:
        return f"{scheme}://…"
    return f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def without_secrets(text: str, uri: str) -> str:
    """Returns `text` on one line with the address as `shown`; '' if it contains anything secret of the address."""
    line = " ".join(text.replace(uri, shown(uri)).split())
    return "" if shown(uri).endswith("…") or any(secret in line for secret in _secrets(uri)) else line


def check(uri: str) -> None:
    """Checks that the address has the form of one that MLflow can use.

    Raises:
        WarplogError: it has no scheme, has a port that is no number, or is a folder, which MLflow no longer supports.
    """
    if is_server(uri) or is_database(uri):
        try:
            _ = urlsplit(uri).port
        except ValueError:
            raise WarplogError(
                f"{shown(uri)}: host and port cannot be read; write special characters of a password as %XX"
            ) from None
    if "://" in uri or uri.startswith("databricks"):
        return
    if uri.startswith(("file:", "/", ".")) or ":" not in uri:
        raise WarplogError(f"{shown(uri)}: MLflow no longer supports folders as stores; use sqlite:///FILE")
    raise WarplogError(f"{shown(uri)}: the address has no scheme; write http://{shown(uri)}")


def refuse_secrets(uri: str) -> None:
    """Checks that a configured address holds no secret, which would be copied into the files of Snakemake.

    Raises:
        WarplogError: it has a user name, password, query or fragment.
    """
    if shown(uri) != uri:
        raise WarplogError(
            f"config: track: uri: {shown(uri)}: must not contain a user name, password or query; remove them, and set"
            f" the complete address in the environment variable {_ADDRESS}"
        )


def _secrets(uri: str) -> set[str]:
    rest = uri.partition("://")[2] or uri
    credentials, query = rest.rpartition("@")[0], rest.partition("?")[2]
    password = credentials.partition(":")[2]
    found = {credentials, password, unquote(password), *password.split("@"), query}
    return {text for text in found | {value for _, value in parse_qsl(query)} if text}
