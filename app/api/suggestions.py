"""POST /v1/libraries/{name}/suggest: which samples to label next."""

from fastapi import APIRouter, Request
from pydantic import Field

from app.api.asked import PathLibrary
from app.api.bodies import MAX_NUMBER, PROBLEMS, Body
from app.api.deps import Asker, Database
from app.api.work import Work
from app.library.selecting import Strategy
from app.library.shapes.suggestions import SuggestionsShape, suggestions_shape
from app.library.suggesting import MOST, Plan, queue_suggestions, suggest
from app.serving.registry import Registry

MAX_AMONG = 20_000  # that one request may have judged: a minute's work for a small model

router = APIRouter(prefix="/v1/libraries", tags=["suggestions"], responses=PROBLEMS)


class Suggest(Body):
    """How many, and how they are chosen."""

    count: int = Field(ge=1, le=MOST, description="推荐几条 | how many")
    model: str | None = Field(
        default=None, max_length=200, description="所用模型的名称，须在服务中 | a model served here"
    )
    strategy: Strategy = Field(default=Strategy.DIVERSITY, strict=False, description="挑选办法 | how they are chosen")
    seed: int = Field(default=0, ge=0, le=MAX_NUMBER, description="随机种子 | seed of what goes by lot")
    among: int = Field(
        default=MAX_AMONG, ge=1, le=MAX_AMONG, description="从抽出的多少条里挑 | drawn by lot to look at"
    )
    to_review: bool = Field(default=False, description="送入复核队列 | put them into the review queue")


@router.post("/{name}/suggest", summary="推荐接下来标注的样本 | Suggest what to label next")
def suggest_samples(
    library: PathLibrary, wanted: Suggest, request: Request, engine: Database, asker: Asker, work: Work
) -> SuggestionsShape:
    """With a model, what it would learn most from; without, what differs most. Put into review on request."""
    registry: Registry = request.app.state.registry
    classifier = registry.get(wanted.model).scheduler.classifier if wanted.model else None
    plan = Plan(count=wanted.count, strategy=wanted.strategy, seed=wanted.seed, among=wanted.among)
    with work.tasks.one(asker.user):
        found = suggest(engine, library=library, classifier=classifier, plan=plan)
        queued = queue_suggestions(engine, found, by=asker.user) if wanted.to_review else None
    return suggestions_shape(found, queued)
