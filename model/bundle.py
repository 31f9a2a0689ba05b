"""Bundle: an immutable folder that holds a classifier and everything that is known about it.

`bundle.json` names the labels, the settings, the SHA-256 of every other file, and its own; the version of a bundle is
the beginning of that. Weights are safetensors and ONNX, tables are JSON; nothing in a bundle is ever unpickled.
"""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from model.errors import BadBundle
from model.files import is_sealed, publish, read_json, sha256_file, write_sealed
from model.text import Normaliser
from model.types import Taxonomy, preview

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `bundle.json` says.

    max_length: tokens a text is cut to. temperature: logits are divided by it before the activation.
    thresholds: per label, for tasks with several labels. abstain_below: a best score under it abstains.
    onnx: precision → file. snapshot, run: where the weights come from. metrics, parity: precision → figures.
    """

    name: str
    arch: str
    taxonomy: Taxonomy
    normaliser: Normaliser
    max_length: int
    pooling: str | None
    snapshot: str
    run: dict[str, Any]
    onnx: dict[str, str]
    temperature: float = 1.0
    thresholds: dict[str, float] = field(default_factory=dict)
    abstain_below: float = 0.0
    metrics: dict[str, Any] = field(default_factory=dict)
    parity: dict[str, Any] = field(default_factory=dict)
    created_at: str = ""

    def to_json(self) -> dict[str, Any]:
        """The form that `bundle.json` carries."""
        return {**asdict(self), "taxonomy": self.taxonomy.to_json(), "normaliser": self.normaliser.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Manifest":
        """The inverse of `to_json`."""
        taxonomy, normaliser = Taxonomy.from_json(data["taxonomy"]), Normaliser.from_json(data["normaliser"])
        return cls(**{**data, "taxonomy": taxonomy, "normaliser": normaliser})


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened bundle, verified byte by byte. `version`: 12 hex digits."""

    path: Path
    version: str
    manifest: Manifest

    def onnx_path(self, precision: str) -> Path:
        """The ONNX file of that precision (`fp32`, `int8`).

        Raises:
            BadBundle: the bundle was exported without it.
        """
        if precision not in self.manifest.onnx:
            has = ", ".join(self.manifest.onnx)
            raise BadBundle(f"{self.path} has no {precision} model, only {has}; export it with --precision {precision}")
        return self.path / self.manifest.onnx[precision]

    @property
    def smallest_precision(self) -> str:
        """The precision that is served unless another is asked for: int8 where it passed its gate."""
        return "int8" if "int8" in self.manifest.onnx else next(iter(self.manifest.onnx))


def seal_bundle(staging: Path, manifest: Manifest, destination: Path) -> Bundle:
    """Hash what lies in `staging`, write `bundle.json`, and publish it as `destination`.

    Raises:
        BadInput: `destination` is there already.
        BadBundle: the manifest names an ONNX file that was not staged.
    """
    files = {str(path.relative_to(staging)): sha256_file(path) for path in sorted(staging.rglob("*")) if path.is_file()}
    write_sealed(staging / "bundle.json", {"schema_version": SCHEMA_VERSION, **manifest.to_json(), "files": files})
    bundle = open_bundle(staging)  # what would be refused later must not be published now
    publish(staging, destination)
    return replace(bundle, path=destination)


def open_bundle(path: Path) -> Bundle:
    """Open the bundle at `path` after hashing every file of it.

    Raises:
        BadBundle: there is none, a newer wenlei wrote it, or a file is missing, added or changed.
    """
    try:
        data = read_json(path / "bundle.json")
        schema, files, seal = int(data.pop("schema_version")), dict(data.pop("files")), str(data.pop("seal"))
    except (FileNotFoundError, NotADirectoryError):
        raise BadBundle(f"{path} is not a bundle: no bundle.json in it; make one with wenlei export") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadBundle(f"{path}/bundle.json can't be read ({error!r}); export the bundle again") from None
    if schema > SCHEMA_VERSION:
        raise BadBundle(f"{path} has schema {schema}, this wenlei reads {SCHEMA_VERSION}; update it")
    if not is_sealed(path / "bundle.json"):
        raise BadBundle(f"{path}/bundle.json has been changed; copy the whole bundle again, or export it anew")
    there = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()} - {"bundle.json"}
    if odd := there.symmetric_difference(files):
        state = "is missing" if (name := min(odd)) in files else "does not belong there"
        raise BadBundle(f"{path}/{name} {state}; copy the whole bundle again")
    for name, expected in files.items():
        if (actual := sha256_file(path / name)) != expected:
            raise BadBundle(
                f"{path}/{name} has been changed: SHA-256 {actual[:12]}…, expected {expected[:12]}…; copy it again"
            )
    try:
        manifest = Manifest.from_json(data)
        absent = [file for file in manifest.onnx.values() if file not in files]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadBundle(f"{path}/bundle.json can't be understood ({error!r}); export the bundle again") from None
    if absent or not manifest.onnx:
        raise BadBundle(f"{path} has no ONNX model {preview(absent)}; export the bundle again")
    return Bundle(path=path, version=seal[:12], manifest=manifest)
