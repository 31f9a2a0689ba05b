"""A bundle opens only if every byte of it is what it was."""

import json
from dataclasses import replace

import pytest

from model.bundle import Manifest, open_bundle, seal_bundle
from model.errors import BadBundle, BadInput
from model.files import staging_folder, write_sealed
from model.text import Normaliser, Width
from model.types import Task, Taxonomy

MANIFEST = Manifest(
    name="hotel",
    arch="bert",
    taxonomy=Taxonomy(Task.MULTI, ("环境", "服务"), multiple=True),
    normaliser=Normaliser(width=Width.ALL),
    max_length=128,
    pooling="mean",
    snapshot="a" * 32,
    run={"seed": 1},
    onnx={"fp32": "onnx/fp32.onnx", "int8": "onnx/int8.onnx"},
    thresholds={"环境": 0.4},
    created_at="2025-01-01T00:00:00+00:00",
)


def seal(destination, manifest=MANIFEST):
    with staging_folder(destination) as staging:
        (staging / "onnx").mkdir()
        for name in ("onnx/fp32.onnx", "onnx/int8.onnx", "tokenizer.json", "README.md"):
            (staging / name).write_text(f"content of {name}")
        return seal_bundle(staging, manifest, destination)


def edit_manifest(bundle, **changes):
    """Change the manifest as somebody would who knows how it is sealed."""
    path = bundle.path / "bundle.json"
    data = json.loads(path.read_text())
    data.pop("seal")
    write_sealed(path, {**data, **changes})


def test_what_was_sealed_comes_back(tmp_path):
    sealed = seal(tmp_path / "bundle")
    assert open_bundle(tmp_path / "bundle") == sealed
    assert sealed.manifest == MANIFEST
    assert len(sealed.version) == 12
    assert sealed.onnx_path("fp32").read_text() == "content of onnx/fp32.onnx"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_the_version_follows_from_the_content_and_not_from_the_place(tmp_path):
    assert seal(tmp_path / "a").version == seal(tmp_path / "b").version
    other = replace(MANIFEST, temperature=2.0)
    assert seal(tmp_path / "c", other).version != seal(tmp_path / "d").version


def test_int8_is_served_where_there_is_one(tmp_path):
    assert seal(tmp_path / "both").smallest_precision == "int8"
    only = replace(MANIFEST, onnx={"fp32": "README.md"})
    bundle = seal(tmp_path / "one", only)
    assert bundle.smallest_precision == "fp32"
    with pytest.raises(BadBundle, match="has no int8 model, only fp32; export it with --precision int8"):
        bundle.onnx_path("int8")


@pytest.mark.parametrize("name", ["onnx/int8.onnx", "tokenizer.json", "README.md"])
def test_one_changed_byte_is_found(tmp_path, name):
    bundle = seal(tmp_path / "bundle")
    data = bytearray((bundle.path / name).read_bytes())
    data[3] ^= 1
    (bundle.path / name).write_bytes(data)
    with pytest.raises(BadBundle, match=rf"bundle/{name} has been changed: SHA-256 .* copy it again"):
        open_bundle(bundle.path)


def test_a_missing_file_is_found(tmp_path):
    bundle = seal(tmp_path / "bundle")
    (bundle.path / "onnx" / "fp32.onnx").unlink()
    with pytest.raises(BadBundle, match=r"onnx/fp32\.onnx is missing; copy the whole bundle again"):
        open_bundle(bundle.path)


@pytest.mark.parametrize("name", ["weights.pkl", "onnx/bundle.json", ".hidden"])
def test_an_added_file_is_found(tmp_path, name):
    bundle = seal(tmp_path / "bundle")
    (bundle.path / name).write_text("added")
    with pytest.raises(BadBundle, match=f"{name} does not belong there"):
        open_bundle(bundle.path)


def test_any_changed_byte_of_the_manifest_is_found(tmp_path):
    path = seal(tmp_path / "bundle").path / "bundle.json"
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(BadBundle, match=r"bundle\.json|has schema"):
            open_bundle(path.parent)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema_version": 2}, "has schema 2, this wenlei reads 1; update it"),
        ({"schema_version": "one"}, "can't be read"),
        ({"files": ["README.md"]}, "can't be read"),
        ({"files": {}}, "does not belong there"),
        ({"taxonomy": None}, "can't be understood"),
        ({"normaliser": {"width": "half"}}, "can't be understood"),
        ({"surprise": 1}, "can't be understood"),
        ({"onnx": []}, "can't be understood"),
        ({"onnx": {}}, "has no ONNX model"),
        ({"onnx": {"fp32": "../elsewhere.onnx"}}, r"has no ONNX model \.\./elsewhere"),
    ],
)
def test_a_manifest_that_can_not_be_trusted_is_refused(tmp_path, changes, reason):
    (tmp_path / "elsewhere.onnx").write_text("not of this bundle")
    bundle = seal(tmp_path / "bundle")
    edit_manifest(bundle, **changes)
    with pytest.raises(BadBundle, match=reason):
        open_bundle(bundle.path)


def test_files_outside_the_bundle_do_not_belong_to_it(tmp_path):
    (tmp_path / "elsewhere.bin").write_text("x")
    bundle = seal(tmp_path / "bundle")
    files = json.loads((bundle.path / "bundle.json").read_text())["files"]
    edit_manifest(bundle, files={**files, "../elsewhere.bin": "0" * 64})
    with pytest.raises(BadBundle, match=r"\.\./elsewhere\.bin is missing"):
        open_bundle(bundle.path)


@pytest.mark.parametrize("content", [None, "{half", "[]", "null"])
def test_what_is_no_bundle_is_named_so(tmp_path, content):
    if content:
        (tmp_path / "bundle.json").write_text(content)
    with pytest.raises(BadBundle, match="is not a bundle: no bundle" if content is None else "can't be read"):
        open_bundle(tmp_path)


def test_a_bundle_is_never_replaced(tmp_path):
    first = seal(tmp_path / "bundle")
    with pytest.raises(BadInput, match="bundle exists already"):
        seal(tmp_path / "bundle")
    assert open_bundle(tmp_path / "bundle") == first
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("broken", [{"run": {"seed": object()}}, {"onnx": {"int8": "onnx/int4.onnx"}}])
def test_a_failed_export_leaves_nothing(tmp_path, broken):
    with pytest.raises((TypeError, BadBundle)):
        seal(tmp_path / "bundle", replace(MANIFEST, **broken))
    assert list(tmp_path.iterdir()) == []
