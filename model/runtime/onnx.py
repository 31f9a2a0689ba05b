"""Run a bundle's ONNX model with onnxruntime, on the CPU or on CUDA.

The device is chosen explicitly: one that is not there is refused, never silently replaced by another.
"""

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from model.bundle import Bundle
from model.errors import BadBundle, MissingExtra, RuntimeUnavailable
from model.runtime.base import normal_text
from model.runtime.decode import Decoder
from model.text import Normaliser
from model.tokenization import load_tokenizer
from model.tokenization.base import Encoded, Tokenizer, collate
from model.types import FloatArray, Text

Device = Literal["cpu", "cuda"]
PROVIDERS = {"cpu": ["CPUExecutionProvider"], "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"]}
FATAL_ONLY = 4  # onnxruntime's log severity; what goes wrong is raised as well
WHEELS = ("onnxruntime", "onnxruntime-gpu")


class OnnxClassifier:
    """A loaded bundle. With one thread, a session runs on its caller's thread, and several callers may share it."""

    def __init__(
        self, session: Any, *, name: str, version: str, decoder: Decoder, normaliser: Normaliser, tokenizer: Tokenizer
    ) -> None:
        self.name = name
        self.version = version
        self.taxonomy = decoder.taxonomy
        self.decoder = decoder
        self._session = session
        self._normaliser = normaliser
        self._tokenizer = tokenizer
        self._padding = {node.name: tokenizer.padding[node.name] for node in session.get_inputs()}

    @classmethod
    def load(
        cls, bundle: Bundle, *, precision: str | None = None, device: Device = "cpu", threads: int = 1
    ) -> "OnnxClassifier":
        """Open a session on the bundle's model: the smallest on the CPU, the float one on CUDA, if none is named.

        Raises:
            MissingExtra: onnxruntime is not installed.
            RuntimeUnavailable: both its wheels are installed, or the device is not there.
            BadBundle: the bundle has no such precision, or its files don't fit together.
        """
        manifest = bundle.manifest
        path = bundle.onnx_path(precision or default_precision(bundle, device))
        session = open_session(path, device=device, threads=threads)
        tokenizer = load_tokenizer(bundle.path, max_length=manifest.max_length)
        if unknown := {node.name for node in session.get_inputs()} - tokenizer.padding.keys():
            raise BadBundle(
                f"{path} takes {', '.join(sorted(unknown))}, which its tokenizer does not give; export the bundle again"
            )
        decoder = Decoder(
            taxonomy=manifest.taxonomy,
            temperature=manifest.temperature,
            thresholds=manifest.thresholds,
            abstain_below=manifest.abstain_below,
        )
        return cls(
            session,
            name=manifest.name,
            version=bundle.version,
            decoder=decoder,
            normaliser=manifest.normaliser,
            tokenizer=tokenizer,
        )

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """Normalise and tokenize; from any thread.

        Raises:
            BadText: a text is empty, too long, or not text; the message gives its place.
        """
        return self._tokenizer.encode(
            [normal_text(text, self._normaliser, where=f"texts[{row}]") for row, text in enumerate(texts)]
        )

    def logits(self, batch: Sequence[Encoded]) -> FloatArray:
        """Run the model on a non-empty batch: (batch, n_labels)."""
        outputs: list[FloatArray] = self._session.run(["logits"], collate(batch, self._padding))
        return outputs[0].astype(np.float32, copy=False)


def default_precision(bundle: Bundle, device: Device) -> str:
    """The bundle's smallest precision on the CPU; on CUDA, which has no kernels for the int8 one, fp32."""
    return bundle.smallest_precision if device == "cpu" else "fp32"


def open_session(path: Path, *, device: Device, threads: int) -> Any:
    """An onnxruntime session on the model at `path`, quiet and without threads that spin.

    Raises:
        MissingExtra, RuntimeUnavailable, BadBundle: as `OnnxClassifier.load`.
    """
    engine = load_engine(device)
    options = engine.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = engine.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = FATAL_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Plans are kept for every shape ever seen, and texts come in thousands of shapes.
    options.enable_mem_pattern = False
    try:
        session = engine.InferenceSession(str(path), options, providers=PROVIDERS[device])
    except Exception as error:  # onnxruntime's own errors share no base class
        raise BadBundle(f"{path} can't be opened by onnxruntime {engine.__version__}: {error}") from None
    if session.get_providers()[0] != PROVIDERS[device][0]:
        raise RuntimeUnavailable(
            f"CUDA was asked for, but onnxruntime could only open {session.get_providers()[0]}; check the driver, "
            "CUDA and cuDNN, or use --device cpu"
        )
    return session


def load_engine(device: Device) -> Any:
    """The onnxruntime module, if it is the only one of its kind and can drive `device`.

    Raises:
        MissingExtra, RuntimeUnavailable: as `OnnxClassifier.load`.
    """
    installed = [wheel for wheel in WHEELS if _is_installed(wheel)]
    if len(installed) > 1:
        raise RuntimeUnavailable(
            f"{' and '.join(installed)} are both installed and overwrite each other; uninstall both, then "
            "pip install 'wenlei[cpu]' or 'wenlei[gpu]'"
        )
    try:
        import onnxruntime as engine  # an extra, and slow to import
    except ImportError as error:
        raise MissingExtra(f"onnxruntime is not installed ({error}); pip install 'wenlei[cpu]'") from None
    if PROVIDERS[device][0] not in engine.get_available_providers():
        raise RuntimeUnavailable(
            f"CUDA was asked for, but this onnxruntime ({', '.join(installed)}) knows only "
            f"{', '.join(engine.get_available_providers())}; pip install 'wenlei[gpu]' in place of 'wenlei[cpu]', "
            "or use --device cpu"
        )
    if device == "cuda":
        engine.preload_dlls()  # CUDA and cuDNN as the nvidia wheels bring them
    return engine


def _is_installed(wheel: str) -> bool:
    try:
        metadata.version(wheel)
    except metadata.PackageNotFoundError:
        return False
    return True
