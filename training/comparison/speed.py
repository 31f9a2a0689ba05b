"""How fast candidates answer on this machine, side by side: each as the bundle that would go live."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from model.bundle import Bundle, open_bundle
from model.comparison import SpeedShape
from model.console import say
from model.files import sha256_file
from model.run import Run
from model.runtime.bench import race
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.types import Text
from training.export import export_run

TEXTS = 256  # of the snapshot, that are answered again and again
ROUNDS = 512
MIB = 1 << 20


def measure_speed(
    runs: Mapping[str, Run], texts: Sequence[Text], *, snapshot: Snapshot, bundles: Path
) -> dict[str, dict[str, SpeedShape]]:
    """Of every precision of each candidate's run, exported to a folder in `bundles` unless it is there already.

    Raises:
        ParityFailed: an exported model does not answer as the trained one does.
    """
    exported = {name: _bundle(run, snapshot, bundles) for name, run in runs.items()}
    contestants = {
        (name, precision): OnnxClassifier.load(bundle, precision=precision)
        for name, bundle in exported.items()
        for precision in bundle.manifest.onnx
    }
    paces = race(contestants, texts[:TEXTS], rounds=ROUNDS)
    found: dict[str, dict[str, SpeedShape]] = {name: {} for name in runs}
    for (name, precision), pace in paces.items():
        found[name][precision] = {
            "p50_ms": pace.p50_ms,
            "p99_ms": pace.p99_ms,
            "texts_per_second": pace.texts_per_second,
            "file_mib": round(exported[name].onnx_path(precision).stat().st_size / MIB, 1),
        }
    return found


def _bundle(run: Run, snapshot: Snapshot, bundles: Path) -> Bundle:
    weights = "".join(sha256_file(path) for path in sorted(run.model_path.glob("*.safetensors")))
    path = bundles / f"{run.path.resolve().name}-{sha256(weights.encode()).hexdigest()[:8]}"
    if not path.exists():
        say(f"导出，为了测速 | exporting, to measure its speed: {run.path}")
        return export_run(run, out=path, snapshot=snapshot)
    return open_bundle(path)
