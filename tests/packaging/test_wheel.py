"""The wheel, installed away from the source, does what the checkout does."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from bundles import tiny_bundle

from model.runtime.base import classify
from model.runtime.onnx import OnnxClassifier
from model.types import Text

ROOT = Path(__file__).parents[2]
TEXTS = ["房间干净，早餐好", "服务员态度差"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment that has wenlei from the wheel only, and the dependencies from the one that runs the tests.

    A .pth file appends the latter's folder after the former's own; .pth files that lie in it, such as that of the
    editable wenlei, are not followed.
    """
    folder = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--quiet", wheel], check=True)
    variables = {"base": str(folder), "platbase": str(folder)}
    own, theirs = sysconfig.get_path("purelib", vars=variables), sysconfig.get_path("purelib")
    (Path(own) / "dependencies.pth").write_text(theirs + "\n")
    return folder


@pytest.fixture
def run(installed, tmp_path):
    """Run a program of the clean environment in an empty folder."""

    def run(program, *arguments):
        clean = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        environment = {**clean, "HOME": str(tmp_path), "PYTHONWARNINGS": "error"}
        command = [installed / "bin" / program, *arguments]
        folder = tmp_path / "empty"
        folder.mkdir(exist_ok=True)
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_wheel_holds_the_packages_the_migrations_and_the_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"app", "model", "training", "wenlei-0.1.0.dist-info"}
    assert "wenlei-0.1.0.dist-info/licenses/LICENSE" in names
    assert {f"{package}/py.typed" for package in ("app", "model", "training")} <= set(names)
    migrations = {str(path.relative_to(ROOT)) for path in (ROOT / "app/store/migrations").rglob("*.*")}
    assert {name for name in migrations if not name.endswith(".pyc")} <= set(names)
    folders = [ROOT / folder / "templates" for folder in ("app/library/doctor", "model/reports", "training/comparison")]
    templates = {str(path.relative_to(ROOT)) for folder in folders for path in folder.iterdir()}
    assert len(templates) > 4
    assert templates <= set(names)


def test_the_code_that_runs_is_the_wheels(run, installed):
    script = "import app, model, training; print(app.__file__, model.__file__, training.__file__)"
    for path in run("python", "-c", script).split():
        assert Path(path).is_relative_to(installed)


def test_help_names_the_commands_of_server_and_training(run):
    help_text = run("wenlei", "--help")
    for command in ("library", "train", "evaluate", "export", "classify", "serve"):
        assert command in help_text


def test_a_bundle_classifies_as_in_the_checkout(run, tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle")
    answer = json.loads(run("wenlei", "classify", "--bundle", bundle.path, "--top-k", "2", "--json", *TEXTS))
    expected = classify(OnnxClassifier.load(bundle), [Text(text) for text in TEXTS], top_k=2)
    assert answer["model"] == {"name": "tiny", "version": bundle.version}
    for result, prediction in zip(answer["results"], expected, strict=True):
        assert result["label"] == prediction.label
        scores = [item.score for item in prediction.labels]
        assert [item["score"] for item in result["labels"]] == pytest.approx(scores, abs=1e-5)  # it is shown rounded


def test_a_library_is_made_by_the_wheels_own_migrations(run, tmp_path):
    (tmp_path / "reviews.csv").write_text("text,label\n房间干净,好评\n早餐凉了,差评\n房间干净,好评\n", encoding="utf-8")
    columns = ("--text", "text", "--label", "label", "--json")
    answer = json.loads(run("wenlei", "library", "import", tmp_path / "reviews.csv", *columns))
    assert (answer["read"], answer["added"], answer["duplicates"], answer["rejected"]) == (3, 2, 1, 0)
    assert (tmp_path / "empty" / "var" / "wenlei.db").exists()
