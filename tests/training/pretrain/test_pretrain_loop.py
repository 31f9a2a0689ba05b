"""The loop of pretraining: it learns, goes on exactly after any end, and adds up over batches and processes."""

import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_windows import N_TOKENS, MadeWindows, tiny_bert
from pretrain_made import pretrain_made
from safetensors.torch import load_file
from transformers import OpenAIGPTConfig

from model.architectures.gpt import GptLanguageModel, build_decoder
from model.errors import BadInput, BadRun
from training.device import NumberFormat, to_tensors
from training.loop import Diverged
from training.pretrain import memory
from training.pretrain.curves import CurveFile
from training.pretrain.gpt_objective import GptObjective
from training.pretrain.loop import Pretraining
from training.pretrain.memory import NotEnoughMemory, check_memory
from training.pretrain.options import Decay, Optimizer, Options
from training.pretrain.starting import checkpoint_activations
from training.pretrain.tokens import TokenTable

OPTIONS = Options(
    steps=12,
    learning_rate=3e-3,
    batch_tokens=256,
    max_length=32,
    precision=NumberFormat.FP32,
    evaluations=3,
    warmup_steps=0,
)
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SCRIPT = Path(__file__).with_name("pretrain_made.py")


class Killed(Exception):
    """Stands for a process that ends amid training."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """So small a model is the slower the more threads work on it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pretraining(
    folder: Path, options: Options = OPTIONS, *, per_batch: int = 8, seed: int = 5, **changes: float
) -> Pretraining:
    folder.mkdir(exist_ok=True)
    return Pretraining(
        objective=tiny_bert(folder / "vocabulary", **changes),
        windows=MadeWindows(per_batch=per_batch),
        options=options,
        seed=seed,
        checkpoint=folder / "checkpoint",
        curves=CurveFile(folder / "curves.jsonl"),
    )


def losses(folder: Path) -> list[tuple[Any, ...]]:
    """What the curves say that has no time in it."""
    points = [json.loads(line) for line in (folder / "curves.jsonl").read_text().splitlines()]
    return [(p["step"], p.get("loss"), str(p.get("parts")), str(p.get("held_out"))) for p in points]


def of_steps(folder: Path) -> list[float]:
    """The losses of steps alone."""
    return [loss for _, loss, *_ in losses(folder) if loss is not None]


def weights(loop: Pretraining) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in loop.model.state_dict().items()}


def test_it_learns_which_tokens_texts_are_made_of(tmp_path: Path) -> None:
    loop = pretraining(tmp_path, replace(OPTIONS, steps=60, learning_rate=1e-2))
    loop.run()
    bits = [p["held_out"]["bits_per_masked_character"] for p in loop.curves.points if "held_out" in p]
    assert len(bits) == 4
    assert bits[0] == pytest.approx(np.log2(65), abs=0.3)  # knows nothing yet
    assert bits[-1] < 3.5
    assert bits[-1] == loop.progress.held_out["bits_per_masked_character"]


@pytest.mark.parametrize("optimizer", list(Optimizer))
def test_a_training_that_goes_on_from_a_checkpoint_ends_with_the_same_weights(
    optimizer: Optimizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(OPTIONS, optimizer=optimizer, accumulate=2)
    undisturbed = pretraining(tmp_path / "undisturbed", options)
    undisturbed.run()
    broken_off = pretraining(tmp_path / "killed", options)
    note, steps = broken_off.note, iter(range(100))

    def note_until_killed(losses: dict[str, float]) -> None:
        note(losses)
        if next(steps) == 6:  # two steps after a checkpoint
            raise Killed

    monkeypatch.setattr(broken_off, "note", note_until_killed)
    with pytest.raises(Killed):
        broken_off.run()
    torch.rand(7)
    resumed = pretraining(tmp_path / "killed", options)
    resumed.run()
    assert resumed.progress.step == 12
    for name, weight in weights(undisturbed).items():
        assert torch.equal(weight, weights(resumed)[name]), name
    assert losses(tmp_path / "killed") == losses(tmp_path / "undisturbed")


def script(folder: Path, *arguments: object) -> "subprocess.Popen[bytes]":
    folder.mkdir(exist_ok=True)
    path = os.pathsep.join([str(SCRIPT.parents[3]), str(SCRIPT.parent)])
    return subprocess.Popen(
        [sys.executable, SCRIPT, folder, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
    )


def test_after_kill_9_the_losses_are_the_same_to_the_last_digit(tmp_path: Path) -> None:
    killed = script(tmp_path / "killed", 40, 0.1)
    pretrain_made(tmp_path / "undisturbed", steps=40, dropout=0.1)
    deadline = time.monotonic() + 60
    while not (tmp_path / "killed" / "checkpoint" / "state.safetensors").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(random.random() * 0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert len(losses(tmp_path / "killed")) < 45
    pretrain_made(tmp_path / "killed", steps=40, dropout=0.1)
    assert len(losses(tmp_path / "undisturbed")) == 45
    assert losses(tmp_path / "killed") == losses(tmp_path / "undisturbed")


def test_two_processes_train_as_one_does(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    two = script(tmp_path / "two", 6, 0.0, port)
    pretrain_made(tmp_path / "one", steps=6, dropout=0.0)
    _, told = two.communicate(timeout=120)
    assert two.returncode == 0, told.decode()
    together = load_file(tmp_path / "two" / "model" / "model.safetensors")
    for name, weight in load_file(tmp_path / "one" / "model" / "model.safetensors").items():
        torch.testing.assert_close(together[name], weight, rtol=1e-3, atol=2e-5, msg=name)
    assert of_steps(tmp_path / "two") == pytest.approx(of_steps(tmp_path / "one"), rel=1e-4)
    # What the first one prepares the others wait for; its error is the only one that is told.
    assert (tmp_path / "two" / "ended-0").read_text() == "made by 0; BadInput('no corpus')"
    assert (tmp_path / "two" / "ended-1").read_text() == "None; SystemExit(2)"


def test_a_step_of_two_small_batches_is_a_step_of_the_whole(tmp_path: Path) -> None:
    whole = pretraining(tmp_path / "whole", replace(OPTIONS, steps=3), per_batch=8, **NO_DROPOUT)
    halves = pretraining(tmp_path / "halves", replace(OPTIONS, steps=3, accumulate=2), per_batch=4, **NO_DROPOUT)
    for loop in (whole, halves):
        loop.run()
    for name, weight in weights(whole).items():
        torch.testing.assert_close(weights(halves)[name], weight, rtol=1e-3, atol=2e-5, msg=name)


def test_checkpointed_activations_give_the_same_losses(tmp_path: Path) -> None:
    plain, frugal = pretraining(tmp_path / "plain"), pretraining(tmp_path / "frugal")
    checkpoint_activations(frugal.model)
    for loop in (plain, frugal):
        loop.run()
    assert of_steps(tmp_path / "frugal") == pytest.approx(of_steps(tmp_path / "plain"), rel=1e-5)


def test_a_gpt_with_checkpointed_activations_keeps_less_and_has_the_same_gradients() -> None:
    config = OpenAIGPTConfig(vocab_size=N_TOKENS, n_positions=64, n_embd=32, n_layer=3, n_head=4, attn_pdrop=0.2)
    torch.manual_seed(1)
    objective = GptObjective(model=GptLanguageModel(build_decoder(config)), tokens=TokenTable.made_up(N_TOKENS))
    batch, _ = memory.make_probes(objective, 64)
    kept, gradients = [], []
    for frugal in (False, True):
        if frugal:
            checkpoint_activations(objective.model)
        cpu = torch.device("cpu")
        kept.append(memory.kept_bytes(objective, batch, device=cpu, precision=NumberFormat.FP32))
        torch.manual_seed(2)
        loss = objective.losses(to_tensors(batch.inputs, cpu))["next_token"]
        gradients.append(torch.autograd.grad(loss, list(objective.model.parameters())))
    assert kept[1] < 0.5 * kept[0]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_loss_that_is_no_number_is_told_with_its_step(tmp_path: Path) -> None:
    loop = pretraining(tmp_path, replace(OPTIONS, learning_rate=1e18, clip_norm=1e18))
    with pytest.raises(Diverged, match=r"at step \d+; lower --learning-rate"):
        loop.run()


def test_a_checkpoint_of_another_precision_is_refused(tmp_path: Path) -> None:
    pretraining(tmp_path, replace(OPTIONS, steps=3, evaluations=3)).run()
    with pytest.raises(BadRun, match="in fp32, here it would be cpu in bf16"):
        pretraining(tmp_path, replace(OPTIONS, precision=NumberFormat.BF16)).run()


def test_a_batch_that_will_not_fit_is_refused_with_one_that_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = pretraining(tmp_path)

    def free(size: int) -> None:
        meminfo = tmp_path / "meminfo"
        meminfo.write_text(f"MemTotal: 99999999 kB\nMemAvailable:    {size // 1024} kB\n")
        monkeypatch.setattr(memory, "MEMORY_FILE", meminfo)

    def check(batch_tokens: int) -> None:
        options = replace(OPTIONS, batch_tokens=batch_tokens)
        check_memory(loop.objective, options)

    free(200_000_000)
    check(4096)
    with pytest.raises(
        NotEnoughMemory, match=r"--batch-tokens 9999999 needs about .* --batch-tokens (\d+) would"
    ) as told:
        check(9_999_999)
    fits = int(str(told.value).split("; --batch-tokens ")[1].split()[0])
    check(fits)
    free(100_000)
    with pytest.raises(NotEnoughMemory, match="too little for a single text of --max-length 32"):
        check(4096)


def test_the_estimate_of_memory_is_near_to_what_is_taken(tmp_path: Path) -> None:
    loop = pretraining(tmp_path)
    small, large = memory.make_probes(loop.objective, 32)
    kept = [
        memory.kept_bytes(loop.objective, probe, device=loop.device, precision=loop.precision)
        for probe in (small, large)
    ]
    a_place = (kept[1] - kept[0]) / (large.places - small.places)
    # by hand, in float32: each layer keeps some 20 vectors of 32, and a row of attention in each of 4 heads a few times
    assert 2 * 4 * (12 * 32 + 2 * 64) < a_place < 2 * 4 * (30 * 32 + 4 * 64 + 6 * 4 * 32)


def test_weights_that_the_last_step_ruined_are_no_result(tmp_path: Path) -> None:
    with pytest.raises(Diverged, match=r"the held-out loss is nan after step 1; lower --learning-rate \(now 1e\+30\)"):
        pretraining(tmp_path, replace(OPTIONS, steps=1, learning_rate=1e30)).run()


def test_a_batch_that_did_not_fit_is_told_with_a_smaller_one(tmp_path: Path) -> None:
    loop = pretraining(tmp_path, replace(OPTIONS, batch_tokens=1 << 20), per_batch=1 << 11)
    upcoming = next(loop.steps())
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    loop.steps = lambda: iter([upcoming])  # type: ignore[method-assign]
    try:
        resource.setrlimit(resource.RLIMIT_AS, (taken + (50 << 20), hard))
        with pytest.raises(NotEnoughMemory, match="try --batch-tokens 524288 --accumulate 2"):
            loop.run()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_the_learning_rate_rises_then_falls() -> None:
    for decay, half_way in ((Decay.LINEAR, 0.5), (Decay.COSINE, 0.5)):
        options = replace(OPTIONS, warmup=0.2, decay=decay)
        assert options.rate_at(0.1, step=999) == pytest.approx(0.5)
        assert options.rate_at(0.2, step=999) == pytest.approx(1.0)
        assert options.rate_at(0.6, step=999) == pytest.approx(half_way)
        assert options.rate_at(1.0, step=999) == pytest.approx(0.0, abs=1e-9)
    assert replace(OPTIONS, decay=Decay.COSINE, warmup=0.2).rate_at(0.4, step=999) > 0.75  # a line's rate there


def test_a_short_training_warms_up_for_a_hundred_steps_all_the_same() -> None:
    options = replace(OPTIONS, warmup=0.05, warmup_steps=100)
    assert options.rate_at(0.1, step=19) == pytest.approx(0.2)
    assert options.rate_at(0.5, step=99) == options.rate_at(0.5, step=999) < 1


def test_judging_takes_no_large_part_of_a_few_minutes() -> None:
    options = replace(OPTIONS, steps=None, minutes=10, evaluations=10)
    assert options.affordable_evaluations(1) == 10
    assert options.affordable_evaluations(30) == 3
    assert options.affordable_evaluations(600) == 1
    assert OPTIONS.affordable_evaluations(600) == OPTIONS.evaluations


def test_minutes_end_a_training_and_its_clock_goes_on_after_a_break(tmp_path: Path) -> None:
    options = replace(OPTIONS, steps=None, minutes=0.02, checkpoint_seconds=0.0)
    loop = pretraining(tmp_path, options)
    started = time.monotonic()
    loop.run()
    assert 1.2 <= loop.progress.seconds < time.monotonic() - started + 0.1
    assert loop.optimizer.param_groups[0]["lr"] < 0.2 * options.learning_rate
    told = [step for step, loss, *_ in losses(tmp_path) if loss is not None]
    assert told == [*range(10, loop.progress.step, 10), loop.progress.step]
    again = pretraining(tmp_path, options)
    again.run()
    assert again.progress.step - loop.progress.step < 10  # the clock had all but run out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": None}, "give one of them"),
        ({"minutes": 3.0}, "give one of them"),
        ({"steps": -1}, "--steps -1: give 0 at least"),
        ({"steps": None, "minutes": 0.0}, "--minutes 0: give a number of minutes, more than 0"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"batch_tokens": 16}, "holds no text of --max-length 32"),
    ],
)
def test_options_out_of_range_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        replace(OPTIONS, **changes)
