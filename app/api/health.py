"""Whether the process lives, whether it can answer, and its figures."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from app.api.metrics import Metrics
from app.api.responses import json_response
from app.serving.registry import Registry

router = APIRouter(tags=["health"])


@router.get("/health/live", summary="进程存活 | The process lives")
async def live() -> Response:
    """Always answers while the process does."""
    return json_response({"status": "live"})


@router.get("/health/ready", summary="可以服务 | Models are loaded and warm")
async def ready(request: Request) -> Response:
    """Answers 503 until every model is loaded and warm."""
    registry: Registry = request.app.state.registry
    registry.check_ready()
    return json_response({"status": "ready", "models": registry.names()})


@router.get("/metrics", summary="Prometheus 指标 | Figures for Prometheus")
async def metrics(request: Request) -> Response:
    """The figures in Prometheus' text format."""
    figures: Metrics = request.app.state.metrics
    registry: Registry = request.app.state.registry
    queues = {served.name: served.scheduler.depth for served in registry.models()}
    return Response(figures.render(queues), media_type=CONTENT_TYPE_LATEST)
