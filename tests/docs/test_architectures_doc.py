"""docs/architectures.md points to code that is there, and shows the pictures that its script draws."""

import ast
import importlib.util
import re
import sys
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"
DIAGRAMS = DOCS / "diagrams"
TEXT = (DOCS / "architectures.md").read_text(encoding="utf-8")
TO_CODE = sorted(set(re.findall(r"\[`([^`\]]+)`\]\(([^)#]+\.py)\)", TEXT)))
LARGEST = 40_000  # bytes of a picture


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Classes, functions, methods and constants of a module."""
    names = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            names |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
    return frozenset(names)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """docs/diagrams/draw.py, which imports its neighbours as a script does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DIAGRAMS))
        patch.setattr(sys, "dont_write_bytecode", True)
        specification = importlib.util.spec_from_file_location("draw_diagrams", DIAGRAMS / "draw.py")
        assert specification
        assert specification.loader
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "path"), TO_CODE)
def test_what_the_document_names_is_in_the_file_it_points_to(name: str, path: str) -> None:
    file = DOCS / path
    if name.endswith(".py"):
        assert file.name == name
        assert file.exists()
    else:
        assert name in defined_in(file), f"{path} has no {name}"


def test_every_link_to_code_says_what_is_to_be_found_there() -> None:
    linked = re.findall(r"\]\(([^)#]+\.py)\)", TEXT)
    assert len(set(linked)) > 20
    assert set(linked) == {path for _, path in TO_CODE}


def test_the_pictures_are_those_that_the_script_draws(script: ModuleType) -> None:
    drawn = script.drawings()
    committed = {path.name: path.read_text(encoding="utf-8") for path in DIAGRAMS.glob("*.svg")}
    assert sorted(drawn) == sorted(committed)
    for name, content in drawn.items():
        assert content == committed[name], f"{name}: run python docs/diagrams/draw.py"


def test_the_document_shows_every_picture_once() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(diagrams/([^)]+)\)", TEXT)
    assert sorted(shown) == sorted(path.name for path in DIAGRAMS.glob("*.svg"))


@pytest.mark.parametrize("path", sorted(DIAGRAMS.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_is_small_has_its_own_background_and_fonts_for_chinese(path: Path) -> None:
    content = path.read_bytes()
    assert len(content) < LARGEST
    root = ElementTree.fromstring(content)
    assert "Noto Sans CJK SC" in root.get("font-family", "")
    background = root.find("{http://www.w3.org/2000/svg}rect")
    assert background is not None
    assert background.get("fill", "").startswith("#")


def test_a_label_on_another_or_outside_is_refused(script: ModuleType) -> None:
    for x, y in ((100, 100), (290, 60)):
        drawing = script.Drawing(300, 200, "图 picture")
        drawing.text(100, 98, "标签 label")
        drawing.text(x, y, "另一个 another")
        with pytest.raises(ValueError, match="another"):
            drawing.svg()
    with pytest.raises(ValueError, match="takes"):
        drawing.box(10, 10, 40, 30, "太长的一行 too long")
