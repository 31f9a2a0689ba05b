"""When and where a record was made, so that its figures can be understood later."""

import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any


def describe_environment() -> dict[str, Any]:
    """Versions and machine, so that a figure can be understood later."""
    packages = (
        "wenlei",
        "torch",
        "transformers",
        "tokenizers",
        "scikit-learn",
        "numpy",
        "onnxruntime",
        "onnxruntime-gpu",
    )
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    commit = _commit()
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        **versions,
        **({"commit": commit} if commit else {}),
    }


def _commit() -> str | None:
    """The commit that this code was checked out at, if it was."""
    root, git = Path(__file__).parents[1], shutil.which("git")
    if not git or not (root / ".git").exists():
        return None
    asked = subprocess.run([git, "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S603  fixed words
    return asked.stdout.strip()[:12] or None


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
