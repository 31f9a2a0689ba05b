import json
import os
import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import EntryPoint, version
from pathlib import Path

import httpx
import pytest
import typer

import app.cli
from app.cli import COMMANDS, GROUPS, build, main
from model.bundle import Bundle
from model.files import staging_folder
from tests.bundles import tiny_bundle

WENLEI = [sys.executable, "-c", "from app.cli import main; main()"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    return int(left.value.code or 0), captured.out, captured.err


def test_help_lists_every_command_and_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom app.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "print({'torch', 'transformers', 'fastapi', 'sqlalchemy', 'onnxruntime'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in (*COMMANDS, *GROUPS, "train", "evaluate", "export"):
        assert re.search(rf"\b{name}\b", done.stdout)
    assert done.stdout.strip().endswith("set()")


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"wenlei {version('wenlei')}\n", "")


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS])
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = run(capsys, name, "--help")
    assert (code, "Usage: wenlei" in out) == (0, True)


@pytest.mark.parametrize("command", [("library", "import"), ("library",), ("train",), ("review", "start")])
def test_help_in_a_narrow_terminal_loses_no_character(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    narrow = run(capsys, *command, "--help")[1]
    monkeypatch.setenv("COLUMNS", "400")
    wide = run(capsys, *command, "--help")[1]
    chinese = re.compile(r"[\u4e00-\u9fff]")
    assert sorted(chinese.findall(narrow)) == sorted(chinese.findall(wide))


def test_a_command_that_does_not_exist_is_a_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "nonsense")
    assert code == 2
    assert "nonsense" in err


def test_commands_that_can_not_be_imported_name_their_extra_and_leave_the_rest_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = EntryPoint(name="training", value="no_such_module:app", group="wenlei.commands")
    monkeypatch.setattr(app.cli, "entry_points", lambda group: [broken])
    code, out, err = run(capsys, "train", "--snapshot", "x")
    assert (code, out) == (2, "")
    assert "pip install 'wenlei[train]'" in err
    assert run(capsys, "--help")[0] == 0


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file or directory", "a.csv"), "wenlei: a.csv: No such file or directory\n"),
        (PermissionError(13, "Permission denied", "var"), "wenlei: var: Permission denied\n"),
        (OSError("two\nlines"), "wenlei: two lines\n"),
    ],
)
def test_a_failing_file_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: OSError, message: str
) -> None:
    def fail(arguments: object) -> None:
        raise error

    monkeypatch.setattr(app.cli, "build", fail)
    assert run(capsys, "x") == (2, "", message)


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENLEI_DEBUG", "1")
    monkeypatch.setattr(app.cli, "build", lambda arguments: open("/no/such/file"))  # noqa: PTH123, SIM115
    with pytest.raises(FileNotFoundError):
        main(["x"])


@pytest.mark.parametrize("place", ["app.cli.build", "app.cli.audit.load_settings"])
def test_an_interrupt_is_exit_code_130_and_says_how_to_go_on(
    place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("WENLEI_HOME", str(tmp_path))
    monkeypatch.setattr(place, interrupt)
    code, _, told = run(capsys, "audit", "list")
    assert code == 130
    assert told.count("已中断") == 1


def test_being_told_to_end_is_exit_code_143_and_leaves_no_half_written_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def write_for_long(arguments: object) -> None:
        with staging_folder(tmp_path / "run") as staging:
            (staging / "model.bin").write_bytes(b"x")
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(app.cli, "build", write_for_long)
    try:
        assert run(capsys, "x")[0] == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS, "train", "evaluate", "export"])
def test_every_command_can_answer_in_json(name: str) -> None:
    command = typer.main.get_command(build([name])).commands[name]
    for leaf in getattr(command, "commands", {name: command}).values():
        assert any("--json" in parameter.opts for parameter in leaf.params), leaf.name


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_serve_answers_until_it_is_told_to_stop_and_then_finishes(bundle: Bundle) -> None:
    port = free_port()
    command = [*WENLEI, "serve", "--bundle", str(bundle.path), "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            greeting = next(line for line in process.stderr if line.startswith("http"))
            assert greeting.startswith(f"http://127.0.0.1:{port} ")
            assert next(process.stderr).startswith(f"curl http://127.0.0.1:{port}/v1/classify")
            answer = httpx.post(f"http://127.0.0.1:{port}/v1/classify", json={"texts": ["房间很好"]})
            assert answer.json()["model"]["version"] == bundle.version
            threads = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
            status = Path(f"/proc/{process.pid}/status").read_text()
            resident = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])
        finally:
            process.send_signal(signal.SIGTERM)
            logs = process.communicate(timeout=20)[1]
    assert "Application shutdown complete" in logs
    assert process.returncode == 143
    assert threads < 24 + 2 * (os.cpu_count() or 1)
    assert resident < 300_000  # of which the model itself is next to nothing


def test_serve_says_in_json_where_it_is_and_what_it_serves_once_it_is_ready(bundle: Bundle) -> None:
    command = [*WENLEI, "serve", "--bundle", str(bundle.path), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            ready = json.loads(process.stdout.readline())
            assert ready["models"] == [{"name": "tiny", "version": bundle.version}]
            assert httpx.get(f"{ready['url']}/health/ready").status_code == 200
        finally:
            process.terminate()
            assert process.communicate(timeout=20)[0] == ""


def test_serve_refuses_a_port_in_use_before_it_loads_anything(
    capsys: pytest.CaptureFixture[str], bundle: Bundle
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, out, err = run(capsys, "serve", "--bundle", str(bundle.path), "--port", port)
    assert (code, out, err) == (2, "", f"wenlei: port {port} is in use; choose another with --port\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bundle", "/no/such/bundle", "--port", "0"], "/no/such/bundle is not a bundle"),
        ([], "name the folder of a bundle with --bundle"),
        (["--bundle", ".", "--host", "no.such.host.invalid"], "--host no.such.host.invalid: there is no such address"),
        (["--bundle", ".", "--port", "70000"], "WENLEI_PORT"),
        (["--bundle", ".", "--workers", "0"], "WENLEI_WORKERS"),
        (["--bundle", ".", "--device", "tpu"], "WENLEI_DEVICE"),
    ],
)
def test_serve_says_what_it_can_not_do(options: list[str], message: str) -> None:
    done = subprocess.run([*WENLEI, "serve", *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_serve_refuses_a_bundle_with_one_changed_byte(tmp_path: Path) -> None:
    path = tiny_bundle(tmp_path / "b").path
    model = path / "onnx" / "fp32.onnx"
    content = bytearray(model.read_bytes())
    content[100] ^= 1
    model.write_bytes(content)
    done = subprocess.run(
        [*WENLEI, "serve", "--bundle", str(path), "--port", "0"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "fp32.onnx has been changed" in done.stderr
    assert "http://" not in done.stderr


def test_json_goes_to_stdout_and_all_else_to_stderr(capsys: pytest.CaptureFixture[str], bundle: Bundle) -> None:
    code, out, _ = run(capsys, "classify", "--bundle", str(bundle.path), "--json", "好")
    assert code == 0
    assert len(json.loads(out)["results"]) == 1
