"""Why a variant must not be measured: what its build and its check say."""

from warplog.records import Record

Refusal = tuple[str, str]  # status and reason


def refuse_build(build: Record) -> Refusal | None:
    """Why a build cannot be run; None where it can."""
    if build["status"] == "ok":
        return None
    status = "unsupported" if build["status"] == "unsupported" else "skipped"
    return status, f"its build says {build['status']}: {build['reason']}"


def refuse_unproven(check: Record, build: Record) -> Refusal | None:
    """Why a variant must not be timed or captured: its check did not pass, or was of another build."""
    if check["status"] in ("unsupported", "skipped"):
        return check["status"], check["reason"]
    if check["status"] != "ok":
        return "skipped", f"its check says {check['status']}: {check['reason']}"
    if check["library_sha256"] != build.get("library_sha256"):
        return "skipped", "its check belongs to another build; run the check again"
    return refuse_build(build)
