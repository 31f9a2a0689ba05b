"""The models that are served: loaded and warmed together, found by name."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from app.errors import NotReady
from app.serving.scheduler import Scheduler
from app.settings import Settings
from model.bundle import Bundle, open_bundle
from model.errors import BadInput, UnknownModel
from model.runtime.base import Classifier, classify
from model.runtime.onnx import OnnxClassifier
from model.types import Text

# One of every length that is often asked for: the first run of a shape is slower than the next.
WARM_UP = [Text("好"), Text("这家店的服务很周到，下次还来。"), Text("房间临街，夜里有些吵。" * 6)]
CPU_BATCH_TOKENS = 512  # more tokens at once run no faster on a core, and hold up whoever waits behind them
CUDA_BATCH_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class Served:
    """A model that answers."""

    name: str
    version: str
    scheduler: Scheduler


class Registry:
    """Empty until `load` is done. The model that was given first answers requests that name none."""

    def __init__(self, *, on_batch: Callable[[str, int], None] | None = None) -> None:
        self.loaded = False
        self.error: Exception | None = None
        self._models: dict[str, Served] = {}
        self._on_batch = on_batch

    def get(self, name: str | None = None) -> Served:
        """The model of that name, or the default one.

        Raises:
            NotReady: the models are still being loaded.
            UnknownModel: there is none of that name.
        """
        self.check_ready()
        if not self._models:
            raise UnknownModel("no model is served here; start the server with --bundle")
        if name is None:
            return next(iter(self._models.values()))
        if name not in self._models:
            raise UnknownModel(f'model: "{name[:100]}" is not served here, only {", ".join(self._models)}')
        return self._models[name]

    def check_ready(self) -> None:
        """Return if requests can be answered.

        Raises:
            NotReady: the models are still being loaded, or could not be.
        """
        if self.error:
            raise NotReady("the models could not be loaded; the log says why")
        if not self.loaded:
            raise NotReady("the models are being loaded; try again in a moment")

    def models(self) -> list[Served]:
        """All models, the default one first."""
        return list(self._models.values())

    def names(self) -> list[dict[str, str]]:
        """Name and version of every model, the default one first."""
        return [{"name": served.name, "version": served.version} for served in self._models.values()]

    async def load(self, settings: Settings) -> None:
        """Load and warm the settings' bundles, off the event loop.

        Raises:
            BadBundle, RuntimeUnavailable, MissingExtra: one of them can't be served.
            BadInput: two have the same name.
        """
        await asyncio.to_thread(self._load, settings)

    async def close(self) -> None:
        """Finish what is under way."""
        for served in self._models.values():
            await served.scheduler.close()

    def serve(self, classifier: Classifier, settings: Settings) -> None:
        """Warm `classifier` and start its scheduler."""
        name, on_batch = classifier.name, self._on_batch
        if name in self._models:
            raise BadInput(f'two bundles are named "{name}"; serve one of them, or export one under another name')
        classify(classifier, WARM_UP)
        self._models[name] = Served(
            name=name,
            version=classifier.version,
            scheduler=Scheduler(
                classifier,
                workers=settings.workers,
                queue_size=settings.queue_size,
                batch_tokens=CPU_BATCH_TOKENS if settings.device == "cpu" else CUDA_BATCH_TOKENS,
                on_batch=(lambda size: on_batch(name, size)) if on_batch else None,
            ),
        )

    def _load(self, settings: Settings) -> None:
        for path in settings.bundles:
            self.serve(load_classifier(open_bundle(path), settings), settings)
        self.loaded = True


def load_classifier(bundle: Bundle, settings: Settings) -> Classifier:
    """`bundle` with the precision and on the device of the settings; it runs on its callers' threads."""
    return OnnxClassifier.load(bundle, precision=settings.precision, device=settings.device, threads=1)
