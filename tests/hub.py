"""A model hub on this machine, which answers huggingface_hub's own client from a folder."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

MAIN = "main"
CONVERTED = "refs/pr/7"  # the pull request of the converter to safetensors
COMMITS = {MAIN: "1" * 40, CONVERTED: "2" * 40}
PULL_REQUEST = {
    "num": 7,
    "title": "Adding `safetensors` variant of this model",
    "author": {"name": "SFconvertbot"},
    "isPullRequest": True,
    "status": "open",
    "createdAt": "2023-01-01T00:00:00.000Z",
    "repo": {"name": "maker/model", "type": "model"},
}


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """The URL at which models are shown that lie in `root`/REVISION/OWNER/NAME."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hub", (_Hub,), {"root": root}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


class _Hub(BaseHTTPRequestHandler):
    root: Path

    def do_HEAD(self) -> None:
        self.do_GET(with_body=False)

    def do_GET(self, *, with_body: bool = True) -> None:
        owner, name, kind, *rest = unquote(urlsplit(self.path).path).removeprefix("/api/models").strip("/").split("/")
        place = "/".join(rest)
        if kind == "discussions":
            found = [PULL_REQUEST] if (self.root / CONVERTED).exists() else []
            return self.send_json({"discussions": found, "count": len(found), "start": 0})
        revision = next((one for one, commit in COMMITS.items() if place.startswith((one, commit))), MAIN)
        folder = self.root / revision / owner / name
        if not folder.exists():
            return self.send_error(404)
        if kind == "revision":
            files = [{"rfilename": path.name} for path in folder.iterdir()]
            return self.send_json({"id": f"{owner}/{name}", "sha": COMMITS[revision], "siblings": files})
        if kind == "tree":
            return self.send_json(
                [
                    {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": f"{revision} {path.name}"}
                    for path in folder.iterdir()
                ]
            )
        path = folder / place.rpartition("/")[2]
        headers = {"ETag": f'"{COMMITS[revision][0]}-{path.name}"', "X-Repo-Commit": COMMITS[revision]}
        return self.send(path.read_bytes() if path.exists() else None, with_body=with_body, headers=headers)

    def send_json(self, data: Any) -> None:
        self.send(json.dumps(data).encode(), with_body=True, headers={"Content-Type": "application/json"})

    def send(self, data: bytes | None, *, with_body: bool, headers: dict[str, str]) -> None:
        if data is None:
            return self.send_error(404)
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(data)
        return None

    def log_message(self, *_: object) -> None:
        pass
