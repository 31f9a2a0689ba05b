"""POST /v1/libraries/{name}/label: let a served model label what nobody has labelled, under a bound on the errors."""

from fastapi import APIRouter, Request
from pydantic import Field

from app.api.asked import HashStart, PathLibrary
from app.api.bodies import PROBLEMS, Body, Note
from app.api.deps import Asker, Database, ServerSettings
from app.api.work import Work
from app.library.gate.running import NOTE_CHARS, Plan, apply, prepare, texts_to_judge, weigh
from app.library.shapes.gate import GateShape, as_outcome, gate_report, gate_shape
from app.serving.registry import Registry, Served
from app.settings import Settings
from model.bundle import open_bundle
from model.errors import BadInput
from model.selective import Bound
from model.types import Split

MAX_POOL = 100_000  # that one request may have judged: some minutes' work for a small model

router = APIRouter(prefix="/v1/libraries", tags=["gate"], responses=PROBLEMS)


class Label(Body):
    """Which model labels, and what has to hold."""

    model: str = Field(max_length=200, description="所用模型的名称，须在服务中 | a model served here")
    max_error: float = Field(
        gt=0, lt=1, allow_inf_nan=False, description="验收的标签最多错多少 | share of the accepted that may be wrong"
    )
    confidence: float = Field(
        default=0.95, ge=0.5, lt=1, allow_inf_nan=False, description="保证的把握 | how sure the guarantee is"
    )
    per_class: bool = Field(default=False, description="每一类都保证 | for each class, and not only in all")
    calibration: HashStart | None = Field(
        default=None, description="校准用的快照，默认训练所用的 | snapshot to calibrate on, by default the training's"
    )
    split: Split = Field(default=Split.TEST, strict=False, description="校准用的划分 | the split to calibrate on")
    dry_run: bool = Field(default=False, description="只试算，不写入 | look only, write nothing")
    review: bool = Field(default=True, description="其余送复核 | queue the rest for review")
    note: Note = None


@router.post("/{name}/label", summary="模型打标签，保证错误率 | Let a model label the rest, with a guarantee")
def label(
    library: PathLibrary,
    wanted: Label,
    request: Request,
    engine: Database,
    settings: ServerSettings,
    asker: Asker,
    work: Work,
) -> GateShape:
    """What passes becomes one sweep in the name of the key's user, who can take it back; the rest goes to review."""
    registry: Registry = request.app.state.registry
    served = registry.get(wanted.model)
    classifier = served.scheduler.classifier
    plan = Plan(
        bound=Bound(wanted.max_error, wanted.confidence),
        per_class=wanted.per_class,
        calibration=wanted.calibration,
        split=wanted.split,
    )
    with work.tasks.one(asker.user):
        if (size := texts_to_judge(engine, library)) > MAX_POOL:
            raise BadInput(
                f"{size:,} samples of library {library!r} have no label or one that the gate gave, and one request may "
                f"have {MAX_POOL:,} judged; use wenlei library label --bundle"
            )
        prepared = prepare(
            engine, library=library, classifier=classifier, trained_on=_trained_on(served, settings), plan=plan
        )
        weighed = weigh(engine, prepared, classifier)
        report = gate_report(weighed)
        if wanted.dry_run:
            return gate_shape(report, None)
        note = "; ".join(filter(None, (wanted.note, report["guarantee"])))[:NOTE_CHARS]
        applied = apply(engine, weighed, by=asker.user, report=as_outcome(report), note=note, review=wanted.review)
    return gate_shape(report, applied)


def _trained_on(served: Served, settings: Settings) -> str:
    """The hash of the snapshot that a served model was trained on."""
    for path in settings.bundles:
        opened = open_bundle(path)
        if (opened.manifest.name, opened.version) == (served.name, served.version):
            return opened.manifest.snapshot
    raise BadInput(f"the bundle of model {served.name!r} was replaced while it is served; start the server again")
