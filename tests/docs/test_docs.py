"""What people can type, set and get is written down."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from app.api import (
    doctor,
    events,
    gate,
    imports,
    libraries,
    people,
    reviews,
    samples,
    snapshots,
    suggestions,
    taxonomy,
    upkeep,
)
from app.cli import COMMANDS, GROUPS
from app.errors import STATUSES
from app.settings import Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HTTP = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
KEYS = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
HTTP_LIBRARY = (ROOT / "docs" / "http-library.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [*COMMANDS, *GROUPS, "train", "evaluate", "export", "pretrain", "finetune", "distill", "compare", "baselines"],
)
def test_the_readme_names_every_command(name: str) -> None:
    assert f"wenlei {name}" in README


@pytest.mark.parametrize("code", sorted({code for _, _, code in STATUSES}))
def test_every_error_code_is_explained(code: str) -> None:
    assert f"`{code}`" in HTTP


@pytest.mark.parametrize(
    "nouns",
    [doctor, events, gate, imports, libraries, people, reviews, samples, snapshots, suggestions, taxonomy, upkeep],
)
def test_every_route_to_the_library_is_explained(nouns: ModuleType) -> None:
    for route in nouns.router.routes:
        (method,) = route.methods
        assert re.search(rf"`{method} {re.escape(route.path)}[`?]", HTTP_LIBRARY + KEYS), route.path


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_is_explained(name: str) -> None:
    assert f"`WENLEI_{name.upper()}`" in HTTP + README


def test_the_readme_names_only_targets_that_the_makefile_has() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([a-z]+)|`make ([a-z]+)`", README, re.MULTILINE)
    assert len(targets) > 4
    for target in targets:
        assert f"\n{''.join(target)}:" in makefile


def test_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} → {target}"
